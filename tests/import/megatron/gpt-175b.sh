#!/bin/bash
# A GPT of 175B on 128 devices: arrays, names, arithmetic, comments with an apostrophe (it's one), a here document.
#SBATCH --nodes=16 --ntasks-per-node=1
set -euo pipefail
export CUDA_DEVICE_MAX_CONNECTIONS=1
GPUS_PER_NODE=8
NUM_NODES=${SLURM_NNODES:-16}
WORLD_SIZE=$(($GPUS_PER_NODE * $NUM_NODES))
CHECKPOINTS=$1; LOGS=$2
TP=8 PP=8

cat >hosts <<END
a line with --num-layers 3 that is no command
END

LAUNCH_ARGS=(
    --nproc_per_node "$GPUS_PER_NODE"   # don't count the host
    --nnodes ${NUM_NODES}
    --master_addr localhost
)
GPT_ARGS=(
    --num-layers 96 --hidden-size 12288
    --num-attention-heads 96
    --seq-length 2048 --max-position-embeddings 2048
    --defer-embedding-wgrad-compute --wgrad-deferral-limit 22 --attention-backend auto # as Transformer Engine chooses
)
TRAINING_ARGS="--micro-batch-size 1 --global-batch-size $((WORLD_SIZE * 12)) --bf16 \
    --use-distributed-optimizer --overlap-grad-reduce"
MODEL_PARALLEL_ARGS=(--tensor-model-parallel-size $TP --sequence-parallel --pipeline-model-parallel-size ${PP})
MODEL_PARALLEL_ARGS+=(--num-layers-per-virtual-pipeline-stage 3)
DATA_ARGS=(--data-path my-corpus --split '949,50,1' --tokenizer-type GPT2BPETokenizer)

echo torchrun pretrain_gpt.py --num-layers 1
torchrun "${LAUNCH_ARGS[@]}" megatron/pretrain_gpt.py \
    "${GPT_ARGS[@]}" $TRAINING_ARGS "${MODEL_PARALLEL_ARGS[@]}" \
    "${DATA_ARGS[@]}" --save "$CHECKPOINTS" --tensorboard-dir="$LOGS" 2>&1 | tee log.txt
