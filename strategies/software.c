#include "strategies/software.h"

#include <stddef.h>

static const char *const attentions[] = {"unfused", "flash", NULL};
static const char *const pures[] = {"none", "language_models", "all", NULL};      /* as enum dl_pure */
static const char *const sends[] = {"asynchronous", "batched", "blocking", NULL}; /* as enum dl_sends */

static const char *const accumulates[] = {"shards", "chunk", "whole", "whole_in_pipeline",
                                          NULL}; /* as enum dl_accumulates */

static const char *const bucket_copies[] = {"none", "replicas", "always", NULL}; /* as enum dl_bucket_copies */

const char *const dl_dispatches[] = {"to_experts", "to_nodes", NULL}; /* as enum dl_dispatch */

/* What is read goes to where it is needed; only what has another form there has a place of its own. */
struct options {
    struct dl_software is;
    int64_t attention, sends, pure, dispatch, gathers_ahead, accumulates, bucket_copies, zero_in_pipeline;
    bool dropout;
    struct dl_json kernels, operands, lacks, schedules;
};
static const struct options defaults = {.is = {.collective_units_fraction = 1,
                                               .host_s_per_group_launch = -1,
                                               .group_host_s = -1,
                                               .launches_per_kernel = 1,
                                               .gradient_bytes = 4,
                                               .dispatch_fraction = 1,
                                               .dispatch_overlap_fraction = 1,
                                               .send_messages = 1,
                                               .collective_near_fraction = 1,
                                               .gather_launches = 1,
                                               .loader = {.workers = 1},
                                               .keep = {.times = 1},
                                               .scatters_sends = true,
                                               .step_barrier = true,
                                               .drains_at_batches = true,
                                               .drains_at_end = true,
                                               .gradients_persist = true,
                                               .copies_persist = true},
                                        .gathers_ahead = 1,
                                        .zero_in_pipeline = 3,
                                        .dropout = true};
static const struct dl_field fields[] = {
    {"host_s_per_launch", DL_NUMBER, offsetof(struct options, is.host_s_per_launch), 0, 1, true, NULL,
     "host time of one kernel launch; 0 if absent"},
    {"host_s_per_group_launch", DL_NUMBER, offsetof(struct options, is.host_s_per_group_launch), 0, 1, true, NULL,
     "host time of a launch within a group: the GEMM of one expert; host_s_per_launch if absent"},
    {"linear_host_s", DL_NUMBER, offsetof(struct options, is.linear_host_s), 0, 1, true, NULL,
     "host time of a linear layer beside its launches, once in the forward and once in the backward; 0 if absent"},
    {"group_host_s", DL_NUMBER, offsetof(struct options, is.group_host_s), 0, 1, true, NULL,
     "the same of a linear layer of all experts of a rank; linear_host_s if absent"},
    {"launches_per_kernel", DL_NUMBER, offsetof(struct options, is.launches_per_kernel), 0, 100, true, NULL,
     "launches for what the workload counts as one kernel; 1 if absent"},
    {"kernels", DL_LIST, offsetof(struct options, kernels), 0, 0, true, NULL,
     "overrides of how operations are executed; none if absent"},
    {"operands", DL_LIST, offsetof(struct options, operands), 0, 0, true, NULL,
     "cost of quantising the operands of GEMMs in fp8, mxfp8 and nvfp4, which are refused without an entry; none if "
     "absent"},
    {"pure", DL_CHOICE, offsetof(struct options, pure), 0, 0, true, pures,
     "models whose parameters, gradients and moments have the precision of the GEMMs; others have them in fp32; none "
     "if absent"},
    {"gradient_bytes", DL_NUMBER, offsetof(struct options, is.gradient_bytes), 1, 8, true, NULL,
     "bytes of a gradient as accumulated and communicated; 4 if absent"},
    {"bf16_gradient_bytes", DL_NUMBER, offsetof(struct options, is.bf16_gradient_bytes), 1, 8, true, NULL,
     "the same where GEMMs are in bf16; gradient_bytes if absent"},
    {"bf16_zero_gradient_bytes", DL_NUMBER, offsetof(struct options, is.bf16_zero_gradient_bytes), 1, 8, true, NULL,
     "the same with stage 2 or 3 of ZeRO; bf16_gradient_bytes if absent"},
    {"bucket_moves", DL_NUMBER, offsetof(struct options, is.bucket_moves), 0, 100, true, NULL,
     "below stage 3 of ZeRO: elements moved per gradient that replicas sum (into buckets, scaling, out of buckets, "
     "checks of all); 0 if absent"},
    {"gradients_whole", DL_BOOL, offsetof(struct options, is.gradients_whole), 0, 0, true, NULL,
     "stage 1 of ZeRO sums gradients by an all-reduce, not a reduce-scatter; false if absent"},
    {"accumulates", DL_CHOICE, offsetof(struct options, accumulates), 0, 0, true, accumulates,
     "what stages 2 and 3 of ZeRO keep of gradients between micro-batches, unless `when` of data says it; shards if "
     "absent"},
    {"zero_in_pipeline", DL_INT, offsetof(struct options, zero_in_pipeline), 0, 3, true, NULL,
     "the highest stage of ZeRO that the software allows with a pipeline; 3 if absent"},
    {"lacks", DL_LIST, offsetof(struct options, lacks), 0, 0, true, NULL,
     "what the software does not have, so that neither `search` nor the verdict of a step that does not fit "
     "proposes it: tensor, sequence, context, pipeline, expert, zero 1, zero 2, zero 3, selective (recomputation), "
     "offload; nothing if absent"},
    {"schedules", DL_LIST, offsetof(struct options, schedules), 0, 0, true, NULL,
     "the pipeline schedules that the software has, for `search`; all if absent"},
    {"gathers_stage_2", DL_BOOL, offsetof(struct options, is.gathers_stage_2), 0, 0, true, NULL,
     "stage 2 of ZeRO gathers parameters layer by layer in the forward and keeps them until the backward, as FSDP "
     "does; false if absent"},
    {"scatter_moves", DL_NUMBER, offsetof(struct options, is.scatter_moves), 0, 100, true, NULL,
     "in stage 3 of ZeRO: elements moved per gradient before it is scattered (laid out by rank, scaled); 0 if absent"},
    {"gather_moves", DL_NUMBER, offsetof(struct options, is.gather_moves), 0, 100, true, NULL,
     "in stage 3 of ZeRO: elements moved per parameter after it is gathered (copied out of what all ranks sent); 0 if "
     "absent"},
    {"casts_model", DL_BOOL, offsetof(struct options, is.casts_model), 0, 0, true, NULL,
     "the model is cast to the precision of products, and the optimizer keeps fp32 copies beside it: kernels see no "
     "casts, whatever ZeRO gathers (rules with numbers \"pure\" hold); false if absent"},
    {"casts_gathered", DL_BOOL, offsetof(struct options, is.casts_gathered), 0, 0, true, NULL,
     "where ZeRO gathers parameters for their layers: these are kept in fp32 and gathered in the precision of "
     "products: kernels see no casts "
     "(rules with numbers \"pure\" hold); false if absent"},
    {"offload_blocks", DL_BOOL, offsetof(struct options, is.offload_blocks), 0, 0, true, NULL,
     "no kernel overlaps with copies of activations to or from the host, nor in stage 3 with sums for the update "
     "there; false if absent"},
    {"new_memory_bytes_per_s", DL_NUMBER, offsetof(struct options, is.new_memory_bytes_per_s), 1, 1e15, true, NULL,
     "with offload_blocks: rate at which the host fills memory that it allocates for each copy; it keeps such memory "
     "if absent"},
    {"deals_tensors", DL_BOOL, offsetof(struct options, is.deals_tensors), 0, 0, true, NULL,
     "stages 1 and 2 of ZeRO shard by whole tensors, and each rank broadcasts those that it updates, without an "
     "all-gather; false if absent"},
    {"collective_host_s", DL_NUMBER, offsetof(struct options, is.collective_host_s), 0, 1, true, NULL,
     "host time of one collective; 0 if absent"},
    {"collective_rank_host_s", DL_NUMBER, offsetof(struct options, is.collective_rank_host_s), 0, 1, true, NULL,
     "additional host time of a collective for each rank in it, where hosts first compare what they are about to do "
     "(TORCH_DISTRIBUTED_DEBUG=DETAIL); 0 if absent"},
    {"collective_near_fraction", DL_NUMBER, offsetof(struct options, is.collective_near_fraction), 0, 1, true, NULL,
     "of that time, what a rank on the same node adds, which is reached without the network; 1 if absent"},
    {"gather_part_host_s", DL_NUMBER, offsetof(struct options, is.gather_part_host_s), 0, 1, true, NULL,
     "where ZeRO gathers parameters, and in stage 3 scatters gradients: host time for each tensor of each replica, "
     "which is copied alone; 0 if absent"},
    {"vector_part_host_s", DL_NUMBER, offsetof(struct options, is.vector_part_host_s), 0, 1, true, NULL,
     "where stage 3 of ZeRO keeps vectors gathered, and gathers them after the update: host time for each vector of "
     "each replica, which is copied alone; 0 if absent"},
    {"ring_repeats_keys", DL_BOOL, offsetof(struct options, is.ring.repeats_keys), 0, 0, true, NULL,
     "ranks that share sequences in a ring send keys and values repeated for their queries; false if absent"},
    {"ring_gathers_once", DL_BOOL, offsetof(struct options, is.ring.gathers_once), 0, 0, true, NULL,
     "they gather those of all ranks beside the first block of attention, and not a block at a time; false if absent"},
    {"ring_gradient_bytes", DL_NUMBER, offsetof(struct options, is.ring.gradient_bytes), 0, 8, true, NULL,
     "bytes of a value of the gradients of keys and values that go round, 0: as wide as these; 0 if absent"},
    {"ring_merge_moves", DL_NUMBER, offsetof(struct options, is.ring.merge_moves), 0, 1000, true, NULL,
     "elements moved for each element of the queries after each block, to merge it with those before; 0 if absent"},
    {"ring_merge_backward_moves", DL_NUMBER, offsetof(struct options, is.ring.merge_backward_moves), 0, 1000, true,
     NULL, "the same after each block of the backward, to add up gradients; 0 if absent"},
    {"keep_moves", DL_NUMBER, offsetof(struct options, is.keep.moves), 0, 100, true, NULL,
     "elements moved in the forward for each that blocks keep for their backward, where they are iterations of a loop "
     "that copies these into arrays of all blocks (a scan of JAX); 0 if absent"},
    {"keep_backward_moves", DL_NUMBER, offsetof(struct options, is.keep.backward_moves), 0, 100, true, NULL,
     "the same in the backward, to copy those of a block out of these arrays; 0 if absent"},
    {"kept_times", DL_NUMBER, offsetof(struct options, is.keep.times), 0.1, 10, true, NULL,
     "bytes that blocks keep that are not recomputed, over what the model counts: in memory, and in what keep_moves "
     "and "
     "keep_backward_moves copy; 1 if absent"},
    {"repeats_kept_products", DL_BOOL, offsetof(struct options, is.keep.repeats_products), 0, 0, true, NULL,
     "a product whose result blocks keep as it is, without its bias and in no narrow precision, runs twice in the "
     "forward: for what comes next, and into the array of all blocks (first products of the MLP and, if kept_results "
     "has it, the projection of attention; with kept_before_bias all of kept_results that have biases); false if "
     "absent"},
    {"waits_for_scatters", DL_BOOL, offsetof(struct options, is.waits_for_scatters), 0, 0, true, NULL,
     "stage 3 of ZeRO scatters gradients before the backward goes on, not beside it; false if absent"},
    {"waits_for_collectives", DL_BOOL, offsetof(struct options, is.waits_for_collectives), 0, 0, true, NULL,
     "devices execute no kernel during a collective, whatever strategies overlap; false if absent"},
    {"batch_host_s", DL_NUMBER, offsetof(struct options, is.batch_host_s), 0, 1, true, NULL,
     "host time to load a micro-batch before its forward; 0 if absent"},
    {"loader_workers", DL_NUMBER, offsetof(struct options, is.loader.workers), 1, 1e6, true, NULL,
     "with input: threads or processes of a device that unpack samples; 1 if absent"},
    {"raw_bytes_per_s", DL_NUMBER, offsetof(struct options, is.loader.unpacked_bytes_per_s[DL_PACKED_RAW]), 1, 1e15,
     true, NULL,
     "with input: stored bytes that one of them gets through where samples are raw; as they come if absent"},
    {"gzip_bytes_per_s", DL_NUMBER, offsetof(struct options, is.loader.unpacked_bytes_per_s[DL_PACKED_GZIP]), 1, 1e15,
     true, NULL, "the same where they are packed by gzip; as they come if absent"},
    {"jpeg_bytes_per_s", DL_NUMBER, offsetof(struct options, is.loader.unpacked_bytes_per_s[DL_PACKED_JPEG]), 1, 1e15,
     true, NULL, "the same where they are JPEG files; as they come if absent"},
    {"host_spread_fraction", DL_NUMBER, offsetof(struct options, is.host_spread_fraction), 0, 1, true, NULL,
     "standard deviation over mean of the host's time for the same step, lognormal, in each rank and step anew: times "
     "of the host are then those of the slowest rank that is to be expected; 0 if absent"},
    {"drains_at_batches", DL_BOOL, offsetof(struct options, is.drains_at_batches), 0, 0, true, NULL,
     "the host waits for the device before it loads a micro-batch; true if absent"},
    {"weights_in_activation", DL_BOOL, offsetof(struct options, is.weights_in_activation), 0, 0, true, NULL,
     "experts multiply the weights of tokens into what their second product is given, so that what it gives is not "
     "kept; false if absent"},
    {"communication_fraction", DL_NUMBER, offsetof(struct options, is.communication_fraction), 0, 0.9, true, NULL,
     "share of a device's units that is kept for communication: GEMMs, convolutions and attention always have the "
     "rest; 0: communication takes what the device says, while it goes on; 0 if absent"},
    {"collective_units_fraction", DL_NUMBER, offsetof(struct options, is.collective_units_fraction), 0.01, 1, true,
     NULL,
     "units that collectives and sends hold, over those that they hold by themselves, where software limits them "
     "(NCCL: max_ctas): they take that share of what the device says; 1 if absent"},
    {"drains_at_recompute", DL_BOOL, offsetof(struct options, is.drains_at_recompute), 0, 0, true, NULL,
     "the host waits for the device before and after each pass of a block that is recomputed as a whole; false if "
     "absent"},
    {"recomputes_needed", DL_BOOL, offsetof(struct options, is.recomputes_needed), 0, 0, true, NULL,
     "of a block that is recomputed as a whole the end is left out, of which the backward needs nothing: its last "
     "product and the sum after it; false if absent"},
    {"attention", DL_CHOICE, offsetof(struct options, attention), 0, 0, true, attentions,
     "how attention is computed: scores in memory, or fused; unfused if absent"},
    {"projections_apart", DL_BOOL, offsetof(struct options, is.code.projections_apart), 0, 0, true, NULL,
     "where the model stores them apart, queries, keys and values are separate GEMMs, and so are those of a gated "
     "layer; false if absent"},
    {"unfused_wide_groups", DL_BOOL, offsetof(struct options, is.code.unfused_groups), 0, 0, true, NULL,
     "in fp32 and TF32, attention of which several heads of queries share one of keys is unfused; false if absent"},
    {"gathers_key_heads", DL_BOOL, offsetof(struct options, is.code.gathers_key_heads), 0, 0, true, NULL,
     "with more tensor ranks than heads of keys and values, ranks compute equal parts of queries, keys and values and "
     "gather all of them; else each has a copy of its head, whose gradients are summed; false if absent"},
    {"pads_products_to", DL_NUMBER, offsetof(struct options, is.pads_products_to), 1, 1024, true, NULL,
     "sides of GEMMs are padded to multiples of this many elements where that is faster; no padding if absent"},
    {"fused_optimizer", DL_BOOL, offsetof(struct options, is.fused_optimizer), 0, 0, true, NULL,
     "one kernel updates many tensors; selects kernel overrides with fused; false if absent"},
    {"dispatch", DL_CHOICE, offsetof(struct options, dispatch), 0, 0, true, dl_dispatches,
     "tokens are sent once to each expert, or once to each node and rank, unless the strategy says it; to_experts if "
     "absent"},
    {"dispatch_s", DL_NUMBER, offsetof(struct options, is.dispatch_s), 0, 1, true, NULL,
     "where tokens are sent to nodes: device time of each trip beside what travels (flags, synchronisation of ranks); "
     "0 "
     "if absent"},
    {"dispatch_fraction", DL_NUMBER, offsetof(struct options, is.dispatch_fraction), 0.01, 1, true, NULL,
     "where tokens are sent to nodes: the share of a collective's bandwidth that they reach inside a node; 1 if "
     "absent"},
    {"dispatch_overlap_fraction", DL_NUMBER, offsetof(struct options, is.dispatch_overlap_fraction), 0, 1, true, NULL,
     "share of a trip of tokens that goes on beside work with `overlap` of the strategy expert; 1 if absent"},
    {"overlap_host_s", DL_NUMBER, offsetof(struct options, is.overlap_host_s), 0, 1, true, NULL,
     "host time of a forward and of a backward of a block whose trips of tokens overlap, beside its launches; what is "
     "recomputed has none of its own; 0 if absent"},
    {"dispatch_between_s", DL_NUMBER, offsetof(struct options, is.dispatch_between_s), 0, 1, true, NULL,
     "where tokens are sent to nodes: device time of each trip that leaves a node, beside dispatch_s; 0 if absent"},
    {"overlaps_tensor", DL_BOOL, offsetof(struct options, is.overlaps_tensor), 0, 0, true, NULL,
     "collectives of tensor parallelism in the backward overlap with the weight gradient; false if absent"},
    {"scatters_sends", DL_BOOL, offsetof(struct options, is.scatters_sends), 0, 0, true, NULL,
     "pipeline sends are divided over the tensor ranks, which gather the parts unless tokens stay divided; true if "
     "absent"},
    {"part_moves", DL_NUMBER, offsetof(struct options, is.part_moves), 0, 100, true, NULL,
     "elements moved per element that a stage gathers of sends in parts (cleared before, copied after); 0 if absent"},
    {"gathers_outputs", DL_BOOL, offsetof(struct options, is.gathers_outputs), 0, 0, true, NULL,
     "a stage keeps a part of outputs that it sent in parts, and gathers them again before their backward; false if "
     "absent"},
    {"parts_have_shapes", DL_BOOL, offsetof(struct options, is.parts_have_shapes), 0, 0, true, NULL,
     "before each send in parts goes its shape, which the host copies to the device: one message more, and the host "
     "waits for the device as with drains_at_sends; false if absent"},
    {"sends", DL_CHOICE, offsetof(struct options, sends), 0, 0, true, sends,
     "pipeline sends: nobody waits; together with the next receive; or one after the other; asynchronous if absent"},
    {"batches_without_chunks", DL_BOOL, offsetof(struct options, is.batches_without_chunks), 0, 0, true, NULL,
     "where a stage is one part of the model, sends are batched and the host waits for the device at each, whatever "
     "`sends` says; false if absent"},
    {"send_host_s", DL_NUMBER, offsetof(struct options, is.send_host_s), 0, 1, true, NULL,
     "host time of one pipeline send or receive; 0 if absent"},
    {"send_messages", DL_NUMBER, offsetof(struct options, is.send_messages), 1, 1000, true, NULL,
     "messages of one pipeline send, one after the other: shapes and types before the tensor; 1 if absent"},
    {"drains_at_sends", DL_BOOL, offsetof(struct options, is.drains_at_sends), 0, 0, true, NULL,
     "the host waits for the device at pipeline sends and receives; false if absent"},
    {"drains_at_receives", DL_BOOL, offsetof(struct options, is.drains_at_receives), 0, 0, true, NULL,
     "the host waits for the device at pipeline receives, if not at sends; false if absent"},
    {"drains_at_waits", DL_BOOL, offsetof(struct options, is.drains_at_waits), 0, 0, true, NULL,
     "the host also waits for collectives among replicas; false if absent"},
    {"gathers_modules", DL_BOOL, offsetof(struct options, is.gathers_modules), 0, 0, true, NULL,
     "stage 3 of ZeRO gathers the matrices of a block one by one before their use, and the next one meanwhile; false "
     "if absent"},
    {"gathers_ahead", DL_INT, offsetof(struct options, gathers_ahead), 0, 65536, true, NULL,
     "in stage 3 of ZeRO: layers gathered ahead, unless the strategy says it; 1 if absent"},
    {"dispatches_by_maps", DL_BOOL, offsetof(struct options, is.dispatches_by_maps), 0, 0, true, NULL,
     "where tokens are sent to nodes: all ranks gather which token goes to which expert, a byte for each of both, and "
     "with a token go its weights for all experts of a node in fp32; false if absent"},
    {"drains_at_dispatch", DL_BOOL, offsetof(struct options, is.drains_at_dispatch), 0, 0, true, NULL,
     "in the forward the host waits to know how many tokens each expert gets; false if absent"},
    {"drains_after_dispatch", DL_BOOL, offsetof(struct options, is.drains_after_dispatch), 0, 0, true, NULL,
     "and waits once more until they have come, where they are sent to nodes; false if absent"},
    {"drains_at_end", DL_BOOL, offsetof(struct options, is.drains_at_end), 0, 0, true, NULL,
     "the host waits for the device at the end of a step; true if absent"},
    {"evicts_slow_nodes", DL_BOOL, offsetof(struct options, is.evicts_slow_nodes), 0, 0, true, NULL,
     "nodes that are slower than others are found, and the job runs without them; false if absent"},
    {"step_barrier", DL_BOOL, offsetof(struct options, is.step_barrier), 0, 0, true, NULL,
     "no rank begins a step before all have ended the last one; true if absent"},
    {"gradients_persist", DL_BOOL, offsetof(struct options, is.gradients_persist), 0, 0, true, NULL,
     "gradients keep their memory from step to step; else the first backward allocates it; true if absent"},
    {"dropout", DL_BOOL, offsetof(struct options, dropout), 0, 0, true, NULL,
     "transformers have dropout where the workload does not say; true if absent"},
    {"copies_persist", DL_BOOL, offsetof(struct options, is.copies_persist), 0, 0, true, NULL,
     "copies of parameters in the working precision stay; else each forward casts them; true if absent"},
    {"root_bytes", DL_NUMBER, offsetof(struct options, is.root_bytes), 0, 8, true, NULL,
     "bytes per parameter of the square roots that Adam or LAMB computes for all tensors at once; 0 if absent"},
    {"residual_bytes", DL_NUMBER, offsetof(struct options, is.residual_bytes), 0, 8, true, NULL,
     "bytes of an activation that a norm is given, if more than those of the precision; 0 if absent"},
    {"logit_workspace_bytes", DL_NUMBER, offsetof(struct options, is.logit_workspace_bytes), 0, 64, true, NULL,
     "bytes per logit during the backward of the loss, beside fp32 logits and a gradient in the working precision; 0 "
     "if absent"},
    {"pure_logit_workspace_bytes", DL_NUMBER, offsetof(struct options, is.pure_logit_workspace_bytes), 0, 64, true,
     NULL, "the same for models that `pure` selects; 0 if absent"},
    {"pool_index_bytes", DL_NUMBER, offsetof(struct options, is.pool_index_bytes), 0, 8, true, NULL,
     "bytes kept for each result of a max pool: where it was; 0 if absent"},
    {"fragmentation_fraction", DL_NUMBER, offsetof(struct options, is.fragmentation_fraction), 0, 1, true, NULL,
     "memory that the allocator holds beyond what is allocated and freed, over that; 0 if absent"},
    {"keeps_fragments", DL_BOOL, offsetof(struct options, is.keeps_fragments), 0, 0, true, NULL,
     "the allocator cannot give that memory back when it runs short, so a step must fit with it; false if absent"},
    {"flat_gathers", DL_BOOL, offsetof(struct options, is.flat_gathers), 0, 0, true, NULL,
     "stage 1 of ZeRO gathers parameters through flat buffers, one for each replica's part and one for all; the "
     "allocator holds them where no activation has left room, and can give them back when it runs short; false if "
     "absent"},
    {"launch_queue", DL_NUMBER, offsetof(struct options, is.launch_queue), 0, 1e6, true, NULL,
     "launches that the host may be ahead of the device; until the device comes there, the allocator also holds what "
     "reduce-scatters among ranks in step were given. It gives this back when it runs short itself, but not for "
     "communicators of stages and replicas, which come later; 0 if absent"},
    {"gather_launches", DL_NUMBER, offsetof(struct options, is.gather_launches), 1, 100, true, NULL,
     "launches in that queue of an all-gather among ranks in step: its own, and those of further parts that the "
     "product beside it is cut into; 1 if absent"},
    {"gemm_workspaces", DL_NUMBER, offsetof(struct options, is.gemm_workspaces), 0, 1000, true, NULL,
     "callers of the library of matrix products that each keep a workspace for it, `gemm_workspace_bytes` of the "
     "device; 0 if absent"},
    {"group_workspaces", DL_NUMBER, offsetof(struct options, is.group_workspaces), 0, 1000, true, NULL,
     "such workspaces more on stages with experts, whose products are launched on several streams; 0 if absent"},
    {"own_workspace_bytes", DL_NUMBER, offsetof(struct options, is.own_workspace_bytes), 0, 1e12, true, NULL,
     "of workspaces beside these, of sizes that the software sets itself; 0 if absent"},
    {"deferred_head_gradients", DL_NUMBER, offsetof(struct options, is.deferred_head_gradients), 0, 1e9, true, NULL,
     "micro-batches at most whose weight gradients of the head come at the end of the step, so that what they are made "
     "of is kept; their time is counted in the backward; 0 if absent"},
    {"outside_bytes", DL_NUMBER, offsetof(struct options, is.outside_bytes), 0, 1e12, true, NULL,
     "of each device, not in the peak: context, libraries, communicators; 0 if absent"},
    {"backward_gradient_bytes", DL_NUMBER, offsetof(struct options, is.backward_gradient_bytes), 0, 8, true, NULL,
     "per parameter, of gradients as a backward makes them, beside wider ones that accumulate; 0 if absent"},
    {"backward_gradients_stay", DL_BOOL, offsetof(struct options, is.backward_gradients_stay), 0, 0, true, NULL,
     "these are freed where the next backward begins, so that they are beside what forwards keep; else when their "
     "backward is over; false if absent"},
    {"bucket_copies", DL_CHOICE, offsetof(struct options, bucket_copies), 0, 0, true, bucket_copies,
     "whether buckets that stay have a copy of all gradients: not, where replicas sum these whole, or always without "
     "ZeRO, with one replica too; as wide as a backward makes them; none if absent"},
};

const struct dl_field *dl_software_fields(size_t *n_fields)
{
    *n_fields = DL_COUNT(fields);
    return fields;
}

/* With the rules, which are told wrong beside the other keys. */
static enum dl_status read_options(struct dl_json doc, struct options *o, struct dl_arena *arena, struct dl_error *err)
{
    const size_t told = err->n_told;
    struct dl_software *const is = &o->is;
    if ((dl_read_document(doc, "software", fields, DL_COUNT(fields), o, arena, err) && !dl_go_on(err)) ||
        (dl_kernel_rules_read(o->kernels, is->fused_optimizer, arena, &is->kernels, err) && !dl_go_on(err)) ||
        (dl_operand_rules_read(o->operands, arena, &is->operands, err) && !dl_go_on(err)) ||
        (dl_lacks_read(o->lacks, o->schedules, &is->lacks, err) && !dl_go_on(err)))
        return err->status;
    return dl_stop_if_told(err, told);
}

/* What has another form in a file, and what follows from other keys. */
static struct dl_software finished(const struct options *o)
{
    struct dl_software is = o->is;
    is.pure = (enum dl_pure)o->pure;
    is.accumulates = (enum dl_accumulates)o->accumulates;
    is.bucket_copies = (enum dl_bucket_copies)o->bucket_copies;
    is.zero_in_pipeline = (uint32_t)o->zero_in_pipeline;
    is.dispatch = (enum dl_dispatch)o->dispatch;
    is.gathers_ahead = (uint32_t)o->gathers_ahead;
    is.sends = (enum dl_sends)o->sends;
    is.code.attention = attentions[o->attention];
    is.code.without_dropout = !o->dropout;
    if (is.host_s_per_group_launch < 0) is.host_s_per_group_launch = is.host_s_per_launch;
    if (is.group_host_s < 0) is.group_host_s = is.linear_host_s;
    if (is.bf16_gradient_bytes <= 0) is.bf16_gradient_bytes = is.gradient_bytes;
    return is;
}

enum dl_status dl_software_read(struct dl_json doc, struct dl_arena *arena, struct dl_software *out,
                                struct dl_error *err)
{
    struct options o = defaults;
    if (read_options(doc, &o, arena, err)) return err->status;
    if (o.is.new_memory_bytes_per_s > 0 && !o.is.offload_blocks)
        return dl_fail(err, DL_IMPOSSIBLE, dl_json_member(doc, "new_memory_bytes_per_s", arena).where,
                       "needs offload_blocks: copies that go beside kernels are to memory that is kept");
    *out = finished(&o);
    out->name = dl_document_name(doc, arena);
    return DL_OK;
}

void dl_software_slow_hosts(struct dl_software *software, double slowdown)
{
    double *const of_hosts[] = {&software->host_s_per_launch,      &software->host_s_per_group_launch,
                                &software->linear_host_s,          &software->group_host_s,
                                &software->collective_host_s,      &software->gather_part_host_s,
                                &software->collective_rank_host_s, &software->vector_part_host_s,
                                &software->batch_host_s,           &software->send_host_s,
                                &software->overlap_host_s};
    for (size_t i = 0; i < DL_COUNT(of_hosts); i++) *of_hosts[i] *= slowdown;
}
