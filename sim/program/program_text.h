/* program_text.h - the programs of a step as text, for people and to be read again: what is read gives the same step as
 * what was printed, bit for bit.
 *
 * A line is a word that says what it is, then words that name a figure and its value, in any order; a name is the rest
 * of its line. Lines that begin with # say something to people alone.
 *
 *     dlsim program 1
 *     digit tensor values 2 stride 1 lockstep
 *     digit stage values 2 stride 2 stages
 *     sends asynchronous
 *     collective 0 allreduce channel lockstep over tensor bytes 1e6 cause tensor alone_s 2e-3 simulated
 *     stage 0 sends_bytes 1e6 tags 1
 *     begin
 *     alloc parameters layer 0 bytes 2e6
 *     block 0
 *     alloc saved layer 0 bytes 4e6
 *     start 0
 *     work cause compute device_s 1e-3 name gemm
 *     wait 0
 *     item forward micro 0 chunk 0 block 0 gives 0 to 1
 *     stage 1 tags 1
 *     block 0
 *     work cause compute device_s 2e-3 name gemm
 *     item forward micro 0 chunk 0 block 0 wants 0 from 0
 *
 * Instructions that come several times in a row, as those of layers that are alike do, are announced: `repeated 4
 * instructions 3` says that the 3 after it come 4 times. Their sums are then made of products.
 *
 * A collective of replicas that ends with "every 3 turn 1" takes place in the second of three steps, and so on. One
 * `over data drawn` is of pairs of replicas that are drawn anew for each step.
 *
 * A halo, `collective 0 halo ... bytes 4e6 back_fraction 0.5`, goes from each rank to the next and, that fraction of
 * it, to the one before; nothing goes beyond the first and the last. Its bytes are those of all ranks, each counted as
 * one in the middle.
 *
 * A collective of ranks in lockstep that is not `simulated` on the links takes its alone_s, less the work between its
 * start and its wait, and at least what it takes from that work: with `takes_product 0.25`, a quarter of its alone_s if
 * the work is `kernel product`; so with takes_attention and takes_memory. Those of `channel beside` may be several at
 * once, which go one after the other beside all work. A copy between each device and its host,
 *
 *     copy 1 out bytes 1e8 cause offload alone_s 4e-3 simulated
 *
 * is started and waited for by its number too. It goes on beside all work; `out` and `in` go on at once, and so does
 * `ahead`, which an item starts for the next of its kind and waits for if one before it has started it. With `path
 * device-storage`, `device-node_storage`, `host-storage` or `host-node_storage` it is one to storage or from there.
 */
#ifndef DL_PROGRAM_PROGRAM_TEXT_H
#define DL_PROGRAM_PROGRAM_TEXT_H

#include <stdio.h>

#include "sim/core/error.h"
#include "sim/program/step.h"

void dl_step_print(const struct dl_step *step, FILE *out);

/* A step that was read, with all that it points to. */
struct dl_read_step {
    struct dl_step step;
    struct dl_ranks ranks;
    struct dl_program *programs;
    uint32_t n_programs;
    struct dl_comm *calls;
    size_t n_calls, calls_capacity;
    bool *is_simulated; /* by call */
};
/* `text` is the content of `file`; it is changed. */
enum dl_status dl_step_read(char *text, const char *file, struct dl_arena *arena, struct dl_read_step *out,
                            struct dl_error *err);
void dl_read_step_release(struct dl_read_step *s);

/* The words of the text, in the order of their enums; each ends with NULL. */
extern const char *const dl_sends_names[], *const dl_channel_names[], *const dl_copy_names[], *const dl_item_names[];
extern const char *const dl_taken_words[]; /* of what a collective takes, by class of kernel */

#endif
