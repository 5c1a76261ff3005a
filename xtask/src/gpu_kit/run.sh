#!/bin/sh
# Runs a kit (`cargo xtask gpu-kit`) on a machine with a GPU:
#
#   sh run.sh tests                 all tests of the programs, including those that need a GPU (`--ignored` elsewhere)
#   sh run.sh sanitizer             memory errors and data races of the kernels, with NVIDIA's compute-sanitizer
#   sh run.sh race [OPTIONS]        training steps compared with PyTorch, if $PYTHON (python3) has it, with options of ./gpu
#   sh run.sh recurrent [ROUNDS]    the same for a recurrent encoder-decoder and a text classifier
#   sh run.sh [all]                 all of these
#
# quality.sh trains models completely and evaluates them.
set -u
cd "$(dirname "$0")" || exit 1
PYTHON=${PYTHON:-python3}

# Fast tests of every kernel of a training step except Adam's.
MEMCHECK="gpu::linear gpu::embedding gpu::attention gpu::norm gpu::softmax_and_cross_entropy gpu::convolution_and_gates gpu::pool
    gpu::ssru gpu::elementwise gpu::attend_tokens"
# Tests of kernels that use shared memory. racecheck is much slower than memcheck.
RACECHECK="gpu::attention gpu::norm gpu::softmax_and_cross_entropy gpu::convolution_and_gates gpu::pool"

tests() {
    failed=0
    for test in tests/*; do
        echo "== $test"
        "./$test" --include-ignored || failed=1
    done
    return $failed
}

sanitizer() {
    sanitizer=$(command -v compute-sanitizer || echo /usr/local/cuda/bin/compute-sanitizer)
    if [ ! -x "$sanitizer" ]; then
        echo "no compute-sanitizer: it comes with the CUDA toolkit" >&2
        return 1
    fi
    failed=0
    echo "== memcheck: $MEMCHECK"
    check memcheck $MEMCHECK || failed=1
    echo "== racecheck: $RACECHECK"
    check racecheck $RACECHECK || failed=1
    return $failed
}

check() {
    tool=$1
    shift
    "$sanitizer" --tool "$tool" --error-exitcode 9 ./tests/gradients --test-threads 1 --ignored --exact "$@"
}

has_torch() {
    "$PYTHON" -c 'import sys, importlib.util; sys.exit(importlib.util.find_spec("torch") is None)' && return
    echo "$PYTHON has no PyTorch: measuring heedful only"
    return 1
}

race() {
    if has_torch; then
        ./gpu --peer "$PYTHON" "$@"
    else
        ./gpu "$@"
    fi
}

recurrent() {
    if has_torch; then
        HEEDFUL_BENCH_PYTHON=$PYTHON
        export HEEDFUL_BENCH_PYTHON
    fi
    failed=0
    for bench in seq2seq classify; do
        echo "== $bench"
        "./$bench" "$@" --device cuda || failed=1
    done
    return $failed
}

part() {
    start=$(date +%s)
    "$@"
    status=$?
    verdict=ok
    [ $status -eq 0 ] || verdict=FAILED
    summary="$summary$1: $verdict after $(($(date +%s) - start)) s
"
    [ $status -eq 0 ] || whole=1
}

./gpu --about || exit 1
summary= whole=0
what=${1:-all}
[ $# -eq 0 ] || shift
case $what in
    tests | sanitizer | race | recurrent) part "$what" "$@" ;;
    all)
        part tests
        part sanitizer
        part race
        part recurrent
        ;;
    *)
        echo "usage: sh run.sh [tests|sanitizer|race|recurrent|all]" >&2
        exit 2
        ;;
esac
echo
printf %s "$summary"
exit $whole
