# Fewer heads of keys and values than tensor ranks, each of which has a copy of its head.
srun --nodes 1 --ntasks-per-node 8 python pretrain_gpt.py \
    --num-layers 4 --hidden-size 1024 --ffn-hidden-size 4096 --num-attention-heads 16 --group-query-attention \
    --num-query-groups 4 --seq-length 2048 --max-position-embeddings 2048 --position-embedding-type rope \
    --normalization RMSNorm --swiglu --disable-bias-linear --untie-embeddings-and-output-weights --hidden-dropout 0 \
    --attention-dropout 0 --tensor-model-parallel-size 8 --sequence-parallel --micro-batch-size 1 \
    --global-batch-size 8 --bf16 --tokenizer-type NullTokenizer --vocab-size 32767
