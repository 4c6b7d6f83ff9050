# A small mixture of experts with latent attention, a first dense layer and a layout of its own, in fp8.
srun --nodes 2 --ntasks-per-node 8 python pretrain_gpt.py \
    --num-layers 10 --hidden-size 1024 --ffn-hidden-size 4096 --num-attention-heads 16 --seq-length 4096 \
    --max-position-embeddings 4096 --position-embedding-type rope --normalization RMSNorm --swiglu \
    --disable-bias-linear --untie-embeddings-and-output-weights --hidden-dropout 0 --attention-dropout 0 \
    --multi-latent-attention --q-lora-rank 384 --kv-lora-rank 128 --qk-head-dim 64 --qk-pos-emb-head-dim 32 \
    --v-head-dim 64 --num-experts 16 --moe-router-topk 4 --moe-ffn-hidden-size 512 \
    --moe-shared-expert-intermediate-size 1024 --moe-layer-freq '([0]*1+[1]*9)' --moe-router-num-groups 4 \
    --moe-router-group-topk 2 --moe-grouped-gemm --moe-token-dispatcher-type flex --moe-enable-deepep \
    --expert-model-parallel-size 4 --pipeline-model-parallel-size 2 --pipeline-model-parallel-layout 'E|(tt|)*2t*6L' \
    --micro-batch-size 1 --global-batch-size 64 --bf16 --cross-entropy-loss-fusion --cross-entropy-fusion-impl te \
    --fp8-format e4m3 --fp8-recipe tensorwise --fp8-param-gather \
    --use-megatron-fsdp --data-parallel-sharding-strategy optim_grads_params --overlap-grad-reduce \
    --tokenizer-type NullTokenizer --vocab-size 32767 --cuda-graph-impl transformer_engine \
    --recompute-granularity selective --recompute-modules mla_up_proj layernorm \
    --use-precision-aware-optimizer --exp-avg-dtype bf16 --exp-avg-sq-dtype bf16
