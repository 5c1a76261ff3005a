#!/bin/sh
# Runs the bench of a kit (`cargo xtask bench-kit`) on another machine:
#
#   sh run.sh [OPTIONS]             translation compared with CTranslate2; sh run.sh --help lists the options
#
# $PYTHON (python3) needs numpy and the Python version that the kit was made for. The peer is unpacked to
# this script's folder on first use. The JSON lines are written to $HEEDFUL_BENCH_OUTPUT, or to results/
# in this script's folder.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
python=${PYTHON:-python3}

if [ ! -d "$here/site" ]; then
    rm -rf "$here/site.part"
    for wheel in "$here"/wheels/*.whl; do
        "$python" -m zipfile -e "$wheel" "$here/site.part"
    done
    mv "$here/site.part" "$here/site"
fi
chmod +x "$here/translate"
export PYTHONPATH="$here/site" HEEDFUL_BENCH_PYTHON="$python" HEEDFUL_BENCH_PEERS="$here/peers"
export HEEDFUL_BENCH_OUTPUT="${HEEDFUL_BENCH_OUTPUT:-$here/results}"
exec "$here/translate" "$@"
