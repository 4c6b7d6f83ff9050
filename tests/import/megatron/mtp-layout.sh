# A small mixture of experts that predicts two tokens, with its module for the further one on the last part of a layout.
torchrun --nproc_per_node 8 pretrain_gpt.py \
    --num-layers 15 --hidden-size 1024 --ffn-hidden-size 4096 --num-attention-heads 16 --seq-length 4096 \
    --max-position-embeddings 4096 --position-embedding-type rope --normalization RMSNorm --swiglu \
    --disable-bias-linear --untie-embeddings-and-output-weights --hidden-dropout 0 --attention-dropout 0 \
    --num-experts 8 --moe-router-topk 2 --moe-ffn-hidden-size 512 --moe-grouped-gemm \
    --moe-token-dispatcher-type alltoall --expert-model-parallel-size 4 --mtp-num-layers 1 \
    --pipeline-model-parallel-size 2 --pipeline-model-parallel-layout 'Et*3|(tt|)*5,t|tmL' \
    --micro-batch-size 1 --global-batch-size 16 --bf16 --use-distributed-optimizer \
    --tokenizer-type NullTokenizer --vocab-size 32767
