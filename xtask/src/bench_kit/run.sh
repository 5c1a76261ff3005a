#!/bin/sh
# On a machine where a kit (`cargo xtask bench-kit`) was copied to:
#
#   sh run.sh [OPTIONS]             translation beside CTranslate2; sh run.sh --help lists the options
#
# $PYTHON (python3) needs numpy, and the version that the kit was made for. The peer is unpacked beside this script at first use.
# The JSON lines go to $HEEDFUL_BENCH_OUTPUT, or to results/ beside this script.
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
