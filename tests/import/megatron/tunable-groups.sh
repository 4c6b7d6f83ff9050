# Nine micro-batches of a replica, dealt in groups of five and four.
torchrun --nproc_per_node 8 pretrain_gpt.py \
    --num-layers 16 --hidden-size 1024 --num-attention-heads 16 --seq-length 1024 --max-position-embeddings 1024 \
    --pipeline-model-parallel-size 4 --num-layers-per-virtual-pipeline-stage 2 \
    --microbatch-group-size-per-virtual-pipeline-stage 5 --overlap-p2p-communication-warmup-flush \
    --micro-batch-size 2 --global-batch-size 36 --bf16 --padded-vocab-size 50304
