/* megatron_left_out.c - the flags of Megatron-LM that nothing is made of, and why. */
#include "sim/import/megatron.h"

static const struct dl_reason reasons[] = {
    {false, false, "logging and profiling: no part of a step",
     "log-* no-log-* tensorboard-* wandb-* one-logger-* no-one-logger app-tag-* timing-log-* "
     "no-barrier-with-level-1-timing config-logger-dir logging-level profile profile-* use-pytorch-profiler "
     "record-memory-history memory-snapshot-path straggler-* disable-straggler-on-startup moe-per-layer-logging "
     "run-workload-inspector-server nvtx-ranges"},
    {false, false, "checkpoints: no part of a step",
     "save save-* load load-* no-save-* no-load-* ckpt-* no-ckpt-* dist-ckpt-* use-dist-ckpt async-save "
     "async-strategy async-ckpt-* distrib-optim-fully-reshardable-mem-efficient use-persistent-ckpt-worker "
     "auto-detect-ckpt-format verify-integrity finetune pretrained-checkpoint exit-on-missing-checkpoint "
     "non-persistent-* persistent-save-interval replication replication-* adlr-autoresume* no-initialization "
     "no-strict-fsdp-dtensor-load use-checkpoint-opt_param-scheduler use-checkpoint-opt-param-scheduler "
     "override-opt_param-scheduler override-opt-param-scheduler use-mp-args-from-checkpoint-args "
     "no-use-tokenizer-model-from-checkpoint-args export-te-mcore-model"},
    {false, false, "data and tokens: what a step computes does not depend on them",
     "data-path train-data-path valid-data-path test-data-path data-args-path per-split-data-args-path "
     "data-cache-path split vocab-file merge-file tokenizer-model tokenizer-metadata tiktoken-* legacy-tokenizer "
     "trust-remote-code mock-data num-workers dataloader-type no-mmap-bin-files num-dataset-builder-threads "
     "object-storage-cache-path mid-level-dataset-surplus sample-rate mask-prob short-seq-prob eod-mask-loss "
     "reset-position-ids reset-attention-mask no-create-attention-mask-in-dataloader allow-ambiguous-pad-tokens fim-* "
     "tokenizer-hf-* sft"},
    {false, false, "values of the optimizer and of the start: time and memory do not depend on them",
     "lr lr-* min-lr decoupled-lr decoupled-min-lr warmup weight-decay weight-decay-* start-weight-decay "
     "end-weight-decay adam-beta1 adam-beta2 adam-eps clip-grad init-method-* embedding-init-method-std seed "
     "data-parallel-random-init loss-scale initial-loss-scale min-loss-scale loss-scale-window hysteresis "
     "moe-aux-loss-coeff moe-z-loss-coeff moe-router-topk-scaling-factor moe-router-bias-update-rate "
     "mtp-loss-scaling-factor"},
    {false, false, "values inside kernels: time and memory do not depend on them",
     "relative-attention-* norm-epsilon apply-layernorm-1p layernorm-epsilon rotary-* use-rope-scaling "
     "rope-scaling-factor rope-type mscale "
     "mscale-all-dim apply-query-key-layer-scaling glu-linear-offset activation-func-clamp-value "
     "ddp-average-in-collective "
     "moe-router-force-load-balancing"},
    {false, false, "how long the training takes: see --tokens and --samples of dlsim run",
     "train-iters train-samples train-tokens exit-interval exit-duration-in-mins exit-signal-handler eval-iters "
     "eval-interval eval-global-batch-size full-validation multiple-validation-sets test-mode iterations-to-skip"},
    {false, false, "checks and recovery between steps",
     "no-check-for-nan-in-loss-and-grad check-for-* check-weight-hash-across-dp-replicas-interval rerun-mode "
     "error-injection-* result-rejected-tracker-filename enable-ft-package calc-ft-timeouts inprocess-* "
     "distributed-timeout-* manual-gc manual-gc-interval no-manual-gc-eval"},
    {false, false, "how processes start",
     "distributed-backend local-rank local_rank lazy-mpu-init use-cpu-initialization init-model-with-meta-device "
     "disable-gloo-process-groups te-rng-tracker inference-rng-tracker use-mcore-models enable-experimental "
     "tp-comm-bootstrap-backend pipeline-model-parallel-comm-backend inference-* yaml-cfg"},
    {false, true, "how kernels are made: the software file says it",
     "no-masked-softmax-fusion no-bias-gelu-fusion no-bias-swiglu-fusion no-bias-dropout-fusion no-rope-fusion "
     "no-persist-layer-norm no-gradient-accumulation-fusion "
     "use-te-activation-func attention-softmax-in-fp32 fp16-lm-cross-entropy moe-permute-fusion moe-router-fusion "
     "use-fused-weighted-squared-relu openai-gelu "
     "disable-bf16-reduced-precision-matmul calculate-per-token-loss moe-router-dtype moe-router-score-function "
     "moe-router-enable-expert-bias moe-router-pre-softmax moe-router-padding-for-* moe-router-load-balancing-type "
     "moe-input-jitter-eps moe-token-drop-policy moe-apply-probs-on-input "
     "moe-deepep-num-sms moe-enable-deepep moe-flex-dispatcher-* moe-hybridep-num-sms use-legacy-models onnx-safe "
     "fp8-margin fp8-interval fp8-amax-* no-fp8-wgrad keep-fp8-transpose-cache reuse-grad-buf-for-mxfp8-param-ag "
     "empty-unused-memory-level "
     "no-clone-scatter-output-in-embedding cuda-graph-warmup-steps cuda-graph-num-warmup-steps"},
    {false, true, "how collectives are made: dlsim has one way for them",
     "overlap-param-gather-with-optimizer-step ddp-num-buckets "
     "ddp-pad-buckets-for-high-nccl-busbw "
     "ddp-reduce-scatter-with-fp32-accumulation no-align-grad-reduce no-align-param-gather align-grad-reduce "
     "align-param-gather no-gradient-reduce-div-fusion fsdp-double-buffer suggested-communication-unit-size "
     "use-nccl-ub disable-symmetric-registration use-sharp sharp-enabled-group nccl-communicator-config-path "
     "tp-comm-overlap-cfg disable-tp-comm-* tp-comm-overlap-rs-dgrad use-ring-exchange-p2p high-priority-stream-groups "
     "no-async-tensor-model-parallel-allreduce no-use-layer-wise-param-layout outer-dp-sharding-strategy "
     "megatron-fsdp-grad-comm-dtype moe-shared-expert-overlap overlap-cpu-optimizer-d2h-h2d no-pin-cpu-grads "
     "no-pin-cpu-params use-torch-optimizer-for-cpu-offload"},
    {false, true, "the order of work in a pipeline: that of the schedule is simulated",
     "overlap-p2p-communication-warmup-flush delay-wgrad-compute train-sync-interval"},
    {false, true, "steps of a smaller batch come first: those of the full one are simulated",
     "rampup-batch-size step-batch-size-schedule decrease-batch-size-if-needed"},
    {false, true, "sizes may come from a checkpoint: those of the flags are taken", "use-checkpoint-args"},
    {false, true, "dlsim keeps whole inputs of recomputed blocks on every tensor rank", "distribute-saved-activations"},
    {false, true, "norms come before layers in dlsim, which moves the same bytes",
     "apply-residual-connection-post-layernorm"},

    {true, true, "an encoder on stages of its own: dlsim divides no model with an encoder and a decoder into stages",
     "encoder-tensor-model-parallel-size pipeline-model-parallel-split-rank"},
    {true, true, "layers that are no transformer blocks: dlsim has none",
     "mamba-* hybrid-* is-hybrid-model heterogeneous-layers-config-* linear-attention-*"},
    {true, true, "one module for several further tokens: dlsim has one for each", "mtp-use-repeated-layer"},
    {true, true, "images or other inputs beside text: dlsim has no such model",
     "img-h img-w patch-dim num-channels num-classes vision-* swin-* dino-* model-provider dataset-provider "
     "disable-vision-class-token use-packed-sequence packing-buffer-size total-seq-length dataloader-seq-length "
     "language-model-checkpoint language-model-type"},
    {true, true, "retrieval: dlsim has no such model", "retro-* ict-* biencoder-* bert-load retriever-*"},
    {true, true, "reinforcement learning: dlsim simulates plain training steps",
     "perform-rl-step rl-* grpo-* langrl-*"},
    {true, true, "a second model that teaches: dlsim simulates one", "export-kd-*"},
    {true, true, "attention over a part of the tokens, or of another kind: dlsim has none",
     "window-size window-attn-skip-freq experimental-attention-variant dsa-* no-rope-freq softmax-type qk-l2-norm "
     "attention-output-gate"},
    {true, true, "experts of another kind: dlsim has none", "moe-latent-size moe-use-upcycling moe-extended-tp"},
    {true, true, "dlsim moves a share of all activations of blocks to the host, not those of modules",
     "fine-grained-activation-offloading offload-modules"},
    {true, true, "two levels of context parallelism: dlsim has one", "hierarchical-context-parallel-sizes"},
    {true, true, "dlsim gathers parameters in bf16 beside GEMMs in nvfp4", "fp4-param fp4-param-gather"},
    {true, true, "no training", "skip-train"},
};

const struct dl_reason *dl_megatron_reason_of(const char *flag)
{
    return dl_reason_of(reasons, DL_COUNT(reasons), flag);
}
