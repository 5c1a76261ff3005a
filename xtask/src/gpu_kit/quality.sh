#!/bin/sh
# Trains the models of a list, each with several seeds, evaluates them, and writes tables:
#
#   sh quality.sh LIST --data FOLDER --out FOLDER [--jobs N] [--minutes M] [--device cuda|cpu] [--only NAME] [--flags "…"]
#
# A line of LIST is a model: its name | its seeds | its task | recipe and flags of `heedful train` | test
# sets | pack, or nothing. DATA, OUT and SEED are replaced by the folders and the seed. A test set is a
# name, then SOURCE REFERENCE (translate), LABELLED (classify) or TEXT (lm), then flags of `heedful
# evaluate`; several are separated by `;`. A model that starts from OUT/NAME-SEED/run waits for that run,
# which must be listed before it.
#
# N runs share the machine. After M minutes no run is started, and training runs write a checkpoint and stop:
# repeat the command to resume them. $OUT/results.md is rewritten after each run; logs, outputs and models
# stay in $OUT/NAME-SEED. --flags are passed to every training run.
set -u
usage() {
    sed -n '2,5s/^# \{0,1\}//p' "$0" >&2
    exit 2
}
# The program is in this script's folder, as in a kit, unless $HEEDFUL names another.
heedful=${HEEDFUL:-$(cd "$(dirname "$0")" && pwd)/heedful}
jobs=1 minutes= device=cuda only= extra= data= out=
[ $# -gt 0 ] || usage
list=$1
shift
while [ $# -gt 1 ]; do
    case $1 in
        --data) data=$2 ;;
        --out) out=$2 ;;
        --jobs) jobs=$2 ;;
        --minutes) minutes=$2 ;;
        --device) device=$2 ;;
        --only) only=$2 ;;
        --flags) extra=$2 ;;
        *) usage ;;
    esac
    shift 2
done
[ $# -eq 0 ] && [ -r "$list" ] && [ -d "$data" ] && [ -n "$out" ] || usage
mkdir -p "$out" || exit 1
rm -rf "$out/.claims" "$out/.pids" "$out/.stop" "$out/.tables" "$out/.over"
mkdir "$out/.claims" "$out/.pids"
# A stopped run must end again before other runs start from it.
for run in "$out"/*/ended; do
    [ -f "${run%ended}done" ] || rm -f "$run"
done
threads=$(($(getconf _NPROCESSORS_ONLN) / jobs))
[ $threads -ge 1 ] || threads=1

# Field N of a line, with DATA, OUT and SEED replaced.
field() {
    printf '%s\n' "$line" | cut -d '|' -f "$1" | sed "s#DATA/#$data/#g; s#OUT/#$out/#g; s#SEED#${seed:-}#g; s/^ *//; s/ *\$//"
}

lines() {
    grep -v '^ *\(#\|$\)' "$list"
}

# The last value of a key in a JSON file.
number() {
    tr ',{}' '\n\n\n' <"$2" | sed -n "s/^\"$1\": *//p" | tail -n 1
}

train() {
    folder=$1
    shift
    if [ -f "$folder/run/recipe.toml" ]; then
        set -- --resume "$folder/run" $extra
    else
        set -- "$@" --seed "$seed" --out "$folder/run" --force
    fi
    "$heedful" train "$@" --json --device "$device" --threads $threads >"$folder/train.json" 2>>"$folder/train.log" &
    pid=$!
    : >"$out/.pids/$pid"
    wait $pid
    status=$?
    rm -f "$out/.pids/$pid"
    return $status
}

# Evaluates one test set of a run and writes the scores to NAME.json.
evaluate() {
    folder=$1 task=$2 test=$3
    shift 3
    [ ! -s "$folder/$test.json" ] || return 0
    case $task in
        translate)
            source=$1 reference=$2
            shift 2
            "$heedful" translate "$folder/run" "$source" --beam 5 --device "$device" --threads $threads -o "$folder/$test.txt" --force &&
                "$heedful" evaluate "$folder/$test.txt" --ref "$reference" --metric bleu,chrf --confidence --json "$@" >"$folder/$test.part"
            ;;
        classify)
            labelled=$1
            shift
            "$heedful" classify "$folder/run" --label-text "$labelled" --threads $threads -o "$folder/$test.txt" --force >>"$folder/evaluate.log" &&
                "$heedful" evaluate "$folder/$test.txt" --ref "$labelled" --metric accuracy,f1 --json "$@" >"$folder/$test.part"
            ;;
        lm | mlm)
            text=$1
            shift
            "$heedful" evaluate "$text" --model "$folder/run" --metric perplexity --json "$@" >"$folder/$test.part"
            ;;
    esac 2>>"$folder/evaluate.log" && mv "$folder/$test.part" "$folder/$test.json"
}

# One complete run, as far as time allows. The file `ended` means that other runs need not wait for it,
# `done` that it is complete.
one() {
    name=$1 seed=$2
    folder=$out/$name-$seed
    [ ! -f "$folder/done" ] || return 0
    mkdir -p "$folder"
    flags=$(field 4)
    for word in $flags; do
        case $word in
            "$out"/*/run)
                # The run that it starts from.
                while [ ! -f "${word%/run}/ended" ] && [ ! -f "$out/.stop" ]; do sleep 1; done
                ;;
        esac
    done
    [ ! -f "$out/.stop" ] || return 1
    if [ ! -f "$folder/trained" ]; then
        train "$folder" $flags $extra || return 1
        : >"$folder/trained"
    fi
    field 5 | tr ';' '\n' >"$folder/.sets"
    while read -r set rest; do
        [ -z "$set" ] || evaluate "$folder" "$(field 3)" "$set" $rest </dev/null || return 1
    done <"$folder/.sets"
    if [ "$(field 6)" = pack ]; then
        {
            "$heedful" quantize "$folder/run" --to int8 -o "$folder/int8" --force &&
                "$heedful" pack "$folder/int8" -o "$folder/$name-$seed.zip" --force
        } 2>>"$folder/evaluate.log" || return 1
    fi
    : >"$folder/done"
}

# A worker: claims and executes runs that no other worker has claimed.
worker() {
    lines >"$out/.list.$1"
    while IFS= read -r line <&3; do
        seed=
        name=$(field 1)
        [ -z "$only" ] || [ "$name" = "$only" ] || continue
        for seed in $(field 2); do
            [ ! -f "$out/.stop" ] || return
            mkdir "$out/.claims/$name-$seed" 2>/dev/null || continue
            if (one "$name" "$seed"); then
                echo "$name, seed $seed: done"
            elif [ -f "$out/.stop" ]; then
                echo "$name, seed $seed: stopped, to be resumed"
            else
                echo "$name, seed $seed: FAILED; $out/$name-$seed has the logs"
                : >"$out/.claims/$name-$seed/failed"
            fi
            : >"$out/$name-$seed/ended"
            tables
        done
    done 3<"$out/.list.$1"
}

# Writes results.md; a lock folder excludes other workers.
tables() {
    until mkdir "$out/.tables" 2>/dev/null; do sleep 1; done
    lines | while IFS= read -r line; do
        seed=
        table "$(field 1)" "$(field 3)"
    done >"$out/results.part"
    mv "$out/results.part" "$out/results.md"
    rmdir "$out/.tables"
}

# The table of one model: a row for each completed seed, and their mean.
table() {
    name=$1 task=$2
    sets=$(field 5 | tr ';' '\n' | sed 's/^ *//; s/ .*//')
    case $task in
        translate) scores="bleu chrf" measure=valid_bleu ;;
        classify) scores="accuracy" measure=valid_accuracy ;;
        *) scores="by_token by_word" measure=valid_perplexity ;;
    esac
    any=
    for seed in $(field 2); do
        folder=$out/$name-$seed
        [ -f "$folder/done" ] || continue
        if [ -z "$any" ]; then
            any=yes
            printf '### %s\n| seed | seconds | steps |' "$name"
            for set in $sets; do printf ' %s, %s |' "$set" "$(echo $scores | sed 's# # / #g')"; done
            printf ' %s |\n|---|---|---|---|' "$measure"
            for set in $sets; do printf -- '---|'; done
            printf '\n'
        fi
        printf '| %s | %.0f | %s |' "$seed" "$(number seconds "$folder/train.json")" "$(number step "$folder/train.json")"
        for set in $sets; do printf ' %s |' "$(result "$folder/$set.json" $scores)"; done
        printf ' %s |\n' "$(curve "$folder/run/metrics.jsonl")"
    done >"$out/.rows"
    [ -s "$out/.rows" ] || return
    cat "$out/.rows"
    # Confidence intervals belong to single models, so the mean has none.
    awk -F '|' '/^\| [0-9]/ {
        rows++
        for (i = 5; i < NF - 1; i++) { parts[i] = split($i, part, "/"); for (j = 1; j <= parts[i]; j++) sum[i, j] += part[j] }
        fields = NF
    } END {
        printf "| mean | | |"
        for (i = 5; i < fields - 1; i++) { for (j = 1; j <= parts[i]; j++) printf "%s%.2f", (j > 1 ? " / " : " "), sum[i, j] / rows; printf " |" }
        print " |\n"
    }' "$out/.rows"
}

# `2000: 33.9, 4000: 39.5`: validation scores by step.
curve() {
    sed -n "s/.*\"step\":\([0-9]*\).*\"$measure\":\([0-9.]*\).*/\1 \2/p" "$1" | awk '{ printf "%s%d: %.4g", (NR > 1 ? ", " : ""), $1, $2 }'
}

# `38.02 ± 1.60 / 61.3 ± 1.1`: the score of each metric, with its confidence interval if there is one.
result() {
    file=$1 text=
    shift
    for metric in "$@"; do
        part=$(sed -n "s/.*\"$metric\":{\([^}]*}*\).*/\1/p" "$file")
        score=$(printf '%s' "$part" | sed -n 's/.*"score":\([0-9.]*\).*/\1/p')
        [ -n "$score" ] || score=$(sed -n "s/.*\"$metric\":\([0-9.]*\).*/\1/p" "$file")
        margin=$(printf '%s' "$part" | sed -n 's/.*"margin":\([0-9.]*\).*/\1/p')
        text="$text${text:+ / }$score${margin:+ ± $margin}"
    done
    printf '%s' "$text"
}

if [ -n "$minutes" ]; then
    (
        left=$((minutes * 60))
        while [ $left -gt 0 ] && [ ! -f "$out/.over" ]; do
            sleep 1
            left=$((left - 1))
        done
        [ -f "$out/.over" ] || : >"$out/.stop"
        for pid in $(ls "$out/.pids"); do kill -TERM "$pid"; done
    ) &
    watch=$!
fi
workers=
number=1
while [ $number -le "$jobs" ]; do
    worker $number &
    workers="$workers $!"
    number=$((number + 1))
done
wait $workers
: >"$out/.over"
[ -z "$minutes" ] || wait $watch
tables
cat "$out/results.md"
for run in "$out"/.claims/*; do
    [ ! -f "$run/failed" ] || exit 1
done
