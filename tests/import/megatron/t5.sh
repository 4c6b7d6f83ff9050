# T5: the decoder and the encoder have flags of their own, and both read the positions of the longer sequence.
torchrun --nproc-per-node=8 pretrain_t5.py --encoder-num-layers 12 --decoder-num-layers 10 --hidden-size 768 \
    --num-attention-heads 12 --kv-channels 64 --ffn-hidden-size 3072 --encoder-seq-length 512 --decoder-seq-length 128 \
    --max-position-embeddings 512 --micro-batch-size 4 --global-batch-size 32 --bf16 --tensor-model-parallel-size 2 \
    --encoder-pipeline-model-parallel-size 0 --vocab-extra-ids 100 --tokenizer-type BertWordPieceCase
