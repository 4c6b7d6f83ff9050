# BERT large with the local implementation: scores in memory, gradients in fp16.
torchrun --nproc-per-node=8 pretrain_bert.py --num-layers 24 --hidden-size 1024 --num-attention-heads 16 \
    --seq-length 512 --max-position-embeddings 512 --micro-batch-size 4 --global-batch-size 128 --fp16 --deterministic-mode \
    --transformer-impl local --pipeline-model-parallel-size 2 --decoder-first-pipeline-num-layers 10 \
    --use-tp-pp-dp-mapping --optimizer sgd --vocab-file bert-large-uncased-vocab.txt --bert-no-binary-head
