#!/bin/bash
# A text too long for one machine, in 16 shards: a Slurm array. Submit it again after a failure: finished shards are skipped.
#
#   sbatch deploy/slurm/shards.sh run news.en news.de.parts
#   heedful join news.de.parts -o news.de
#
#SBATCH --job-name=heedful
#SBATCH --array=1-16
#SBATCH --cpus-per-task=8
#SBATCH --mem=8G
#SBATCH --time=12:00:00
#SBATCH --requeue
#SBATCH --output=heedful-%A-%a.log

set -eu
model=$1
text=$2
parts=$3

# --shard auto reads from Slurm which task this is and how many there are; threads are as many as processors were given to it.
heedful translate "$model" "$text" --shard auto -o "$parts"
