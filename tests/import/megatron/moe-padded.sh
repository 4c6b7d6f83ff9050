# Experts that get equally many tokens each, all of them on every rank, computed again with the scores.
srun --nodes 1 --ntasks-per-node 8 python pretrain_gpt.py \
    --num-layers 4 --hidden-size 1024 --ffn-hidden-size 4096 --num-attention-heads 16 --seq-length 4096 \
    --max-position-embeddings 4096 --position-embedding-type rope --normalization RMSNorm --swiglu \
    --disable-bias-linear --untie-embeddings-and-output-weights --hidden-dropout 0 --attention-dropout 0 \
    --num-experts 16 --moe-router-topk 4 --moe-ffn-hidden-size 512 --moe-grouped-gemm --moe-use-legacy-grouped-gemm --moe-expert-capacity-factor 1 \
    --moe-pad-expert-input-to-capacity --moe-token-dispatcher-type flex --micro-batch-size 1 --global-batch-size 64 \
    --bf16 --overlap-grad-reduce --tokenizer-type NullTokenizer --vocab-size 32767 --recompute-activations \
    --moe-layer-recompute
