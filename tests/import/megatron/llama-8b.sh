#!/bin/sh
# Llama 3 8B: one long line in a name, run by a shell inside srun. Flags with = and without.
options=" \
  --num-layers 32 --hidden-size 4096 --ffn-hidden-size=14336 --num-attention-heads 32 \
  --group-query-attention --num-query-groups 8 --seq-length 8192 --max-position-embeddings 8192 \
  --position-embedding-type rope --normalization RMSNorm --swiglu --disable-bias-linear \
  --untie-embeddings-and-output-weights --hidden-dropout 0.0 --attention-dropout 0.0 \
  --tokenizer-type HuggingFaceTokenizer --tokenizer-model meta-llama/Meta-Llama-3-8B --vocab-size 128256 \
  --micro-batch-size 1 --global-batch-size 128 --bf16 --cross-entropy-loss-fusion \
  --tensor-model-parallel-size 2 --sequence-parallel --context-parallel-size 2 --cp-comm-type p2p \
  --use-distributed-optimizer --overlap-grad-reduce --overlap-param-gather \
  --recompute-granularity full --recompute-method block --recompute-num-layers 8"
run_cmd="python -u pretrain_gpt.py ${options}"
srun -n 16 sh -c "${run_cmd}"
