# A small mixture of experts: four tensor ranks share attention, and two of them each expert.
srun --nodes 2 --ntasks-per-node 8 python pretrain_gpt.py \
    --num-layers 4 --hidden-size 1024 --ffn-hidden-size 4096 --num-attention-heads 16 --seq-length 4096 \
    --max-position-embeddings 4096 --position-embedding-type rope --normalization RMSNorm --swiglu \
    --disable-bias-linear --untie-embeddings-and-output-weights --hidden-dropout 0 --attention-dropout 0 \
    --num-experts 16 --moe-router-topk 4 --moe-ffn-hidden-size 512 --moe-grouped-gemm \
    --moe-token-dispatcher-type alltoall --tensor-model-parallel-size 4 --sequence-parallel \
    --expert-model-parallel-size 4 --expert-tensor-parallel-size 2 --micro-batch-size 1 --global-batch-size 64 --bf16 \
    --use-distributed-optimizer --overlap-grad-reduce --tokenizer-type NullTokenizer --vocab-size 32767
