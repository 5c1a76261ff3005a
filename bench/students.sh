#!/bin/sh
# BLEU of teachers and students on a GPU: students.sh HEEDFUL DATA OUT tatoeba|europarl ["FLAGS of every training"].
# DATA has the folders tatoeba-en-de and europarl-en-de (train*.en.xz, valid, test). Repeat the command after a stop: it goes
# on where it was.
set -eu
heedful=$1 data=$2/$4-en-de out=$3/$4 recipes=$(cd "$(dirname "$0")/../recipes" && pwd) size=32000 teacher=europarl-gpu student=student-base flags=${5:-}
[ "$4" != tatoeba ] || size=8000 teacher=tatoeba-de-gpu student=student-tiny
mkdir -p "$out"
for side in en de; do [ -s "$out/$side.xz" ] || cat "$data"/train*."$side.xz" >"$out/$side.xz"; done
[ -s "$out/tokenizer.json" ] || "$heedful" vocab --src "$out/en.xz" --tgt "$out/de.xz" --size $size -o "$out/tokenizer.json"
train() { # NAME RECIPE TARGETS SEED
    [ ! -e "$out/$1/recipe.toml" ] || set -- "$1" --resume "$out/$1"
    [ "$2" = --resume ] || set -- "$1" "$recipes/$2.toml" --src "$out/en.xz" --tgt "$3" --valid-src "$data/valid.en.xz" \
        --valid-tgt "$data/valid.de.xz" --vocabulary-file "$out/tokenizer.json" --seed "$4" --out "$out/$1" $flags
    log=$out/$1.log && shift && "$heedful" train "$@" >>"$log" 2>&1
}
bleu() { # NAME, then models and flags
    name=$1 && shift && "$heedful" translate "$@" "$data/test.en.xz" -q --force -o "$out/$name.de"
    echo "$name $("$heedful" evaluate "$out/$name.de" --ref "$data/test.de.xz" --metric bleu,chrf --confidence)"
}
train teacher1 $teacher "$out/de.xz" 1 & train teacher2 $teacher "$out/de.xz" 2 & train undistilled $student "$out/de.xz" 1 & wait
[ -s "$out/teachers.de" ] || "$heedful" translate "$out/teacher1" "$out/teacher2" "$out/en.xz" -q -o "$out/teachers.de"
train student $student "$out/teachers.de" 1
[ -e "$out/int8" ] || { head -n 50000 "$out/teachers.de" >"$out/list.de" && xzcat "$out/en.xz" | head -n 50000 >"$out/list.en"
    "$heedful" shortlist "$out/student" --src "$out/list.en" --tgt "$out/list.de" && "$heedful" quantize "$out/student" --to int8 -o "$out/int8"; }
for name in teacher1 teacher2 undistilled student; do bleu $name "$out/$name"; done
bleu ensemble "$out/teacher1" "$out/teacher2" && bleu int8 "$out/int8" --device cpu && bleu int8-shortlist "$out/int8" --device cpu --shortlist
bleu int8-shortlist-greedy "$out/int8" --device cpu --shortlist --beam 1
