/* tensor_grids.c - tensor ranks in two and three dimensions: volumes, work and memory against the papers' closed forms.
 */
#define _GNU_SOURCE /* fork, pipe */
#include "tests/unit/divided_step.h"

#define LAYERS 2
#define HIDDEN 64.0
#define SEQ 32.0
#define VOCAB 512.0
#define HEADS 16.0
#define SAMPLES 8.0
#define MODEL(more)                                                                                                    \
    "{'schema':'dlsim/workload/1','source':'a test','kind':'transformer','layers':2,'hidden':64,'heads':16,'seq':32,"  \
    "'vocab':512" more "}"
#define FLASH_APART                                                                                                    \
    "{'schema':'dlsim/software/1','source':'a test','host_s_per_launch':0,'collective_host_s':0,'gradient_bytes':4,"   \
    "'attention':'flash','projections_apart':true}"
#define BATCH "'global_batch':8,'microbatch':8"

static const double exactly = 1e-6; /* of bytes over bandwidth */
static const double b_s_h = SAMPLES * SEQ * HIDDEN, h_h = HIDDEN * HIDDEN, v_h = VOCAB * HIDDEN;

static const char *stack_of(uint32_t ways, const char *options)
{
    static char text[300];
    snprintf(text, sizeof text, "{'name':'tensor','ways':%u%s},{'name':'data'}", ways, options);
    return text;
}

/* Elements through the slowest rank, in the time that they take. */
static double sent(const struct dl_session *t, enum dl_item_kind kind)
{
    return cause_s(t, kind, DL_CAUSE_TENSOR) * SLOW_BYTES_PER_S / activation_bytes;
}

/* Seconds of the backward's kernels of that name. */
static double device_s_of(const struct dl_session *t, const char *name)
{
    const struct dl_template *const backward = item(t, DL_ITEM_B);
    double sum = 0;
    for (size_t i = 0; i < backward->n_instructions; i++)
        if (backward->instructions[i].kind == DL_DO && strcmp(backward->instructions[i].name, name) == 0)
            sum += backward->instructions[i].device_s;
    ck_assert_double_gt(sum, 0);
    return sum;
}

struct grid {
    const char *options;
    double x, y, z;
};

static uint32_t ways_of(const struct grid *g) { return (uint32_t)(g->x * g->y * g->z); }

static void open_grid(struct dl_session *t, const struct grid *g, const char *head)
{
    open_step(t, &(struct step){.workload = MODEL(""), .head = head, .stack = stack_of(ways_of(g), g->options)});
}

/* ---- two dimensions, and copies ---- */

static const struct grid summa_grids[] = {
    {",'grid':'2d'", 2, 2, 1},
    {",'grid':'2d'", 4, 4, 1},
    {",'grid':'2d','x':2", 2, 4, 1},
    {",'grid':'2d','y':2", 8, 2, 1},
    {",'grid':'2d','x':1,'y':4", 1, 4, 1},
    {",'grid':'2.5d','z':2", 2, 2, 2},
    {",'grid':'2.5d','x':4,'y':2,'z':4", 4, 2, 4},
};

/* Optimus, table 1: (7 b s h + 12 h^2) / q for a block on q x q ranks, times log q where a broadcast is a tree that
 * sends everything at every level, as here it need not; backward twice as much. Head and embedding are products too.
 * What has one rank in a direction sends nothing there. */
static double summa_volume(const struct grid *g, double of_left, double of_right)
{
    return (g->x > 1 ? of_left / (g->y * g->z) : 0) + (g->y > 1 ? of_right / g->x : 0);
}

START_TEST(panels_move_the_volumes_of_optimus)
{
    const struct grid *const g = &summa_grids[_i];
    const double block = LAYERS * summa_volume(g, 7 * b_s_h, 12 * h_h), head = summa_volume(g, b_s_h, v_h),
                 table = summa_volume(g, 0, v_h);
    const double depth = 2 * (g->z - 1) / g->z * (LAYERS * 12 * h_h + 2 * v_h) / (g->x * g->y);
    struct dl_session t;
    open_grid(&t, g, BATCH);
    check_close("forward", sent(&t, DL_ITEM_F), block + head + table, exactly);
    check_close("backward", sent(&t, DL_ITEM_B), 2 * (block + head) + table + depth, exactly);
    dl_session_close(&t);
    open_grid(&t, g, BATCH ",'recompute':'full'");
    check_close("again", sent(&t, DL_ITEM_B), 3 * block + 2 * head + table + depth, exactly);
    dl_session_close(&t);
}
END_TEST

/* As many as the least common multiple of rows and columns, each with two broadcasts. */
START_TEST(a_product_is_done_by_panels)
{
    static const double panels[] = {2, 4, 4, 8, 4, 2, 4};
    const struct grid *const g = &summa_grids[_i];
    struct dl_session t;
    open_grid(&t, g, BATCH);
    const struct dl_template *const forward = item(&t, DL_ITEM_F);
    double n = 0;
    for (size_t i = 0; i < forward->n_instructions; i++) n += strcmp(forward->instructions[i].name, "fc1") == 0;
    ck_assert_double_eq(n, LAYERS * panels[_i]);
    dl_session_close(&t);
}
END_TEST

/* Everything is divided by all ranks, but copies of the parameters. */
START_TEST(panels_divide_work_activations_and_parameters)
{
    const struct grid *const g = &summa_grids[_i];
    const double ways = ways_of(g);
    struct dl_session whole, part;
    open_step(&whole, &(struct step){.workload = MODEL(""), .head = BATCH, .stack = ""});
    open_grid(&part, g, BATCH);
    check_close("flop", ways * flop_of(&part), flop_of(&whole), 1e-9);
    check_close("compute", ways * cause_s(&part, DL_ITEM_B, DL_CAUSE_COMPUTE),
                cause_s(&whole, DL_ITEM_B, DL_CAUSE_COMPUTE), 1e-9);
    check_close("activations", ways * part.memory[0].activations, whole.memory[0].activations, 1e-9);
    check_close("parameters", ways / g->z * part.memory[0].parameters, whole.memory[0].parameters, 1e-9);
    dl_session_close(&whole);
    dl_session_close(&part);
}
END_TEST

/* Gradients of the input of products apart are summed where these leave them: over all panels, and in three dimensions
 * over y and z, as what is outside is the same along x. */
START_TEST(sums_of_branches_are_divided)
{
    static const struct grid grids[] = {{",'grid':'2d'", 2, 2, 1}, {",'grid':'3d','x':2,'y':2,'z':2", 2, 2, 2}};
    const struct grid *const g = &grids[_i];
    const double parts = _i ? g->y * g->z : g->x * g->y;
    struct dl_session whole, part;
    struct step step = {.software = FLASH_APART, .workload = MODEL(",'projections':'apart'"), .head = BATCH};
    step.stack = "";
    open_step(&whole, &step);
    step.stack = stack_of(ways_of(g), g->options);
    open_step(&part, &step);
    check_close("branches", parts * device_s_of(&part, "branches"), device_s_of(&whole, "branches"), 1e-9);
    dl_session_close(&whole);
    dl_session_close(&part);
}
END_TEST

/* A rank has panels of its own experts only; router and dispatched tokens are as before. */
START_TEST(panels_of_experts_are_those_of_a_rank)
{
    const double experts = LAYERS * 4 * 8 * h_h;
    struct dl_session all, half;
    struct step step = {.workload = MODEL(",'experts':4,'top_k':2"),
                        .head = "'global_batch':16,'microbatch':8,'devices':8",
                        .stack = "{'name':'tensor','ways':4,'grid':'2d'},{'name':'data'}"};
    open_step(&all, &step);
    step.stack = "{'name':'tensor','ways':4,'grid':'2d'},{'name':'data'},{'name':'expert','ways':2}";
    open_step(&half, &step);
    check_close("forward", sent(&all, DL_ITEM_F) - sent(&half, DL_ITEM_F), experts / 2 / 2, exactly);
    check_close("backward", sent(&all, DL_ITEM_B) - sent(&half, DL_ITEM_B), 2 * experts / 2 / 2, exactly);
    check_close("flop", flop_of(&half), flop_of(&all), 1e-9);
    dl_session_close(&all);
    dl_session_close(&half);
}
END_TEST

/* ---- three dimensions ---- */

static const struct grid axonn_grids[] = {
    {",'grid':'3d','x':2,'y':2,'z':2", 2, 2, 2}, {",'grid':'3d','x':4,'y':2,'z':4", 4, 2, 4},
    {",'grid':'3d','x':1,'y':2,'z':4", 1, 2, 4}, {",'grid':'3d','y':4", 4, 4, 1},
    {",'grid':'3d','x':8,'y':1", 8, 1, 1},       {",'grid':'3d','x':1,'y':1,'z':8", 1, 1, 8},
};

static double part_of_ring(double n) { return (n - 1) / n; }

/* The communication model of AxoNN for a product of m x k and k x n elements; every second has x and y swapped. */
struct axonn_volumes {
    double gather, scatter, sum_outputs, sum_inputs;
};

static struct axonn_volumes axonn_volumes(const struct grid *g, double m, double n, double k, bool swapped)
{
    const double x = swapped ? g->y : g->x, y = swapped ? g->x : g->y, z = g->z;
    return (struct axonn_volumes){.gather = part_of_ring(z) * k * n / (x * y),
                                  .scatter = part_of_ring(z) * k * n / (x * y),
                                  .sum_outputs = 2 * part_of_ring(y) * m * n / (x * z),
                                  .sum_inputs = 2 * part_of_ring(x) * m * k / (y * z)};
}

START_TEST(three_dimensions_move_the_volumes_of_axonn)
{
    static const struct {
        double times, n, k;
        bool swapped;
    } products[] = {{LAYERS, 3 * HIDDEN, HIDDEN, false},
                    {LAYERS, HIDDEN, HIDDEN, true},
                    {LAYERS, 4 * HIDDEN, HIDDEN, false},
                    {LAYERS, HIDDEN, 4 * HIDDEN, true},
                    {1, VOCAB, HIDDEN, false}};
    const struct grid *const g = &axonn_grids[_i];
    const struct axonn_volumes table = axonn_volumes(g, SAMPLES * SEQ, HIDDEN, VOCAB, true); /* no gradient of inputs */
    double forward = table.gather + table.sum_outputs, backward = table.scatter, again = 0;
    for (size_t i = 0; i < DL_COUNT(products); i++) {
        const struct axonn_volumes v =
            axonn_volumes(g, SAMPLES * SEQ, products[i].n, products[i].k, products[i].swapped);
        forward += products[i].times * (v.gather + v.sum_outputs);
        backward += products[i].times * (v.scatter + v.sum_inputs);
        if (products[i].times > 1) again += products[i].times * (v.gather + v.sum_outputs);
    }
    struct dl_session t;
    open_grid(&t, g, BATCH);
    check_close("forward", sent(&t, DL_ITEM_F), forward, exactly);
    check_close("backward", sent(&t, DL_ITEM_B), backward, exactly);
    dl_session_close(&t);
    open_grid(&t, g, BATCH ",'recompute':'full'");
    check_close("again", sent(&t, DL_ITEM_B), backward + again, exactly);
    dl_session_close(&t);
}
END_TEST

/* Products are divided by all; what is between two of them is the same along y, what is outside along x. */
START_TEST(three_dimensions_divide_products_and_parameters)
{
    const struct grid *const g = &axonn_grids[_i];
    struct dl_session whole, part;
    open_step(&whole, &(struct step){.workload = MODEL(""), .head = BATCH, .stack = ""});
    open_grid(&part, g, BATCH);
    double inside = 0, outside = 0, saved = 0;
    for (size_t i = 0; i < whole.model.n_layers; i++) {
        const struct dl_layer *const layer = &whole.model.layers[i];
        inside += layer->parameters_inside;
        outside += layer->parameters_outside;
        saved += layer->saved.outside_bytes / (g->y * g->z) + layer->saved.inside_bytes / (g->x * g->z);
    }
    for (int kind = DL_ITEM_F; kind <= DL_ITEM_B; kind++) {
        check_close("fc1", ways_of(g) * kernels_s(&part, kind, "fc1"), kernels_s(&whole, kind, "fc1"), 1e-9);
        check_close("fc2", ways_of(g) * kernels_s(&part, kind, "fc2"), kernels_s(&whole, kind, "fc2"), 1e-9);
        check_close("attention", g->x * g->z * kernels_s(&part, kind, "attention"),
                    kernels_s(&whole, kind, "attention"), 1e-9);
    }
    check_close("parameters", part.memory[0].parameters, activation_bytes * (inside / ways_of(g) + outside / g->y),
                1e-9);
    check_close("activations", part.memory[0].activations, saved, 1e-9);
    check_close("gathered", 1 + part.memory[0].buffers,
                1 + activation_bytes * inside * (1 / (g->x * g->y) - 1.0 / ways_of(g)), 1e-9);
    dl_session_close(&whole);
    dl_session_close(&part);
}
END_TEST

/* With x alone it is Megatron's algorithm, in time and in memory but for vectors. */
START_TEST(a_grid_of_one_dimension_is_a_line)
{
    struct dl_session line, grid;
    open_step(&line, &(struct step){.workload = MODEL(""), .head = BATCH, .stack = stack_of(8, "")});
    open_step(&grid, &(struct step){.workload = MODEL(""), .head = BATCH, .stack = stack_of(8, ",'grid':'3d','x':8")});
    for (int kind = DL_ITEM_F; kind <= DL_ITEM_B; kind++)
        check_close("seconds", item(&grid, kind)->total.seconds, item(&line, kind)->total.seconds, 1e-12);
    ck_assert_double_eq(grid.memory[0].peak, line.memory[0].peak);
    dl_session_close(&line);
    dl_session_close(&grid);
}
END_TEST

/* A schedule that puts weight gradients apart takes their collectives along. */
START_TEST(weight_gradients_keep_their_collectives)
{
    static const struct grid *const grids[] = {&summa_grids[5], &axonn_grids[0]};
    char stacks[2][400];
    struct dl_session together, apart;
    for (int i = 0; i < 2; i++)
        snprintf(stacks[i], sizeof stacks[i], "{'name':'pipeline','ways':2,'schedule':'%s'},%s", i ? "zb-h1" : "1f1b",
                 stack_of(8, grids[_i]->options));
    open_step(&together, &(struct step){.workload = MODEL(""), .head = BATCH, .stack = stacks[0]});
    open_step(&apart, &(struct step){.workload = MODEL(""), .head = BATCH, .stack = stacks[1]});
    const double of_weights = cause_s(&apart, DL_ITEM_W, DL_CAUSE_TENSOR);
    const struct grid *const g = grids[_i];
    const double products = 12 * h_h / (g->x * g->y), depth = (g->z - 1) / g->z; /* of a block; here are two layers */
    const double expected = _i ? depth * (products + v_h / (g->x * g->y))
                               : summa_volume(g, 7 * b_s_h, 12 * h_h) + summa_volume(g, 0, v_h) +
                                     2 * depth * (products + v_h / (g->x * g->y));
    check_close("W", of_weights * SLOW_BYTES_PER_S / activation_bytes, expected, exactly);
    check_close("B + W", cause_s(&apart, DL_ITEM_B, DL_CAUSE_TENSOR) + of_weights,
                cause_s(&together, DL_ITEM_B, DL_CAUSE_TENSOR), 1e-9);
    dl_session_close(&together);
    dl_session_close(&apart);
}
END_TEST

/* ---- rows ---- */

static const struct row_case {
    struct grid grid;
    double inside, outside;                 /* into how many parts work is divided */
    double columns_inside, columns_outside; /* and its columns */
} row_cases[] = {
    {{"", 4, 1, 1}, 4, 1, 4, 1},
    {{",'sequence':true", 4, 1, 1}, 4, 4, 4, 1},
    {{",'grid':'2.5d','x':4,'y':2,'z':4", 4, 2, 4}, 32, 32, 4, 4},
    {{",'grid':'3d','x':4,'y':2,'z':4", 4, 2, 4}, 16, 8, 4, 2},
};

#define TABLE(kernel, pass, rows)                                                                                      \
    "{'kernel':'" kernel "','pass':'" pass "','precision':'bf16','library':'a test',"                                  \
    "'columns':['n','elements','seconds'],'rows':[" rows "]}"

/* Kernels take as many seconds as the square of the width of their rows, which does not follow from their elements. */
static const char *device_that_tells_widths(const struct row_case *c)
{
    static char text[2000];
    char rows[600];
    const double widths[] = {3 * HIDDEN, 4 * HIDDEN, HIDDEN}, head = HIDDEN / HEADS;
    size_t length = 0;
    for (size_t i = 0; i < DL_COUNT(widths); i++) {
        const bool inside = widths[i] > HIDDEN;
        const double n = widths[i] / (inside ? c->columns_inside : c->columns_outside);
        const double elements = SAMPLES * SEQ * widths[i] / (inside ? c->inside : c->outside);
        length +=
            (size_t)snprintf(rows + length, sizeof rows - length, "%s[%g,%g,%g]", i ? "," : "", n, elements, n * n);
    }
    snprintf(text, sizeof text,
             IDEAL_DEVICE_WITH(",'measured':[" TABLE("bias", "weight_gradient", "%s") "," TABLE("layernorm", "forward",
                                                                                                "[%g,%g,%g]") "]"),
             rows, head, 2 * b_s_h / c->inside, head * head);
    return text;
}

/* A bias is as wide as what a rank has of the layer that it is added to; heads have rows of their own width. */
START_TEST(rows_are_as_wide_as_a_rank_has_them)
{
    const struct row_case *const c = &row_cases[_i];
    struct dl_session t;
    open_step(&t, &(struct step){.device = device_that_tells_widths(c),
                                 .workload = MODEL(",'qk_norm':true"),
                                 .head = BATCH,
                                 .stack = stack_of(ways_of(&c->grid), c->grid.options)});
    check_close("biases", kernels_s(&t, DL_ITEM_B, "bias"),
                LAYERS * h_h * ((3 * 3 + 4 * 4) / pow(c->columns_inside, 2) + 2 / pow(c->columns_outside, 2)), 1e-12);
    check_close("norms of heads", kernels_s(&t, DL_ITEM_F, "q_norm"), LAYERS * h_h / pow(HEADS, 2), 1e-12);
    dl_session_close(&t);
}
END_TEST

/* ---- where ranks are ---- */

#define NODES_OF_4(nics, attach)                                                                                       \
    "{'schema':'dlsim/system/1','source':'a test','nodes':64,'transport':'ideal','node':{'device':'a test',"           \
    "'devices':4,'parts':[{'kind':'switch','bandwidth_bytes_per_s':1e9,'latency_s':0,'link':'ideal'}],"                \
    "'nics':{'count':" nics ",'attach':" attach ",'bandwidth_bytes_per_s':1e3,'latency_s':0,'link':'ideal'}},"         \
    "'network':{'kind':'crossbar','link':'ideal','bandwidth_bytes_per_s':1e3,'latency_s':0}}"

/* Weights are gathered over z = 2 ranks, 4 apart and so on two nodes; the four groups share what NICs there are. */
START_TEST(groups_in_step_share_their_links)
{
    static const struct {
        const char *system;
        double crowding;
    } cases[] = {{NODES_OF_4("4", "['device0','device1','device2','device3']"), 1},
                 {NODES_OF_4("2", "['nvswitch0','nvswitch0']"), 2},
                 {NODES_OF_4("1", "['nvswitch0']"), 4}};
    struct dl_session t;
    open_step(&t, &(struct step){.system = cases[_i].system,
                                 .workload = MODEL(""),
                                 .head = BATCH,
                                 .stack = stack_of(8, ",'grid':'3d','x':2,'y':2,'z':2")});
    const double bytes = activation_bytes * (LAYERS * 12 * h_h + 2 * v_h) / (2 * 2) / 2;
    check_close("over the nodes", kernels_s(&t, DL_ITEM_F, "allgather"), cases[_i].crowding * bytes / 1e3, exactly);
    ck_assert_double_lt(kernels_s(&t, DL_ITEM_F, "allreduce"), 1e-3); /* x and y are inside of a node */
    dl_session_close(&t);
}
END_TEST

/* ---- refusals ---- */

START_TEST(what_does_not_divide_is_refused)
{
    static const struct {
        const char *workload, *head;
        uint32_t ways;
        const char *options, *message;
    } bad[] = {
        {MODEL(""), BATCH, 8, ",'grid':'2d'",
         "test.json:/stack/0/ways: must be x y z of the grid, 3 x 3 x 1 = 9, got 8; or give x and y"},
        {MODEL(""), BATCH, 8, ",'grid':'3d','x':2,'y':2,'z':4",
         "test.json:/stack/0/ways: must be x y z of the grid, 2 x 2 x 4 = 16, got 8; or give x and y"},
        {MODEL(""), BATCH, 9, ",'grid':'2d'",
         "test.json:/stack/0/y: must divide the samples of a micro-batch, 8, got 3; 2 or 4 would do"},
        {MODEL(""), BATCH, 16, ",'grid':'2.5d','x':1,'y':4,'z':4",
         "test.json:/stack/0/z: must divide the samples of a row, 2, got 4; 2 would do"},
        {MODEL(""), BATCH, 32, ",'grid':'3d','x':32,'y':1",
         "test.json:/stack/0/x: must divide the heads, 16, got 32; 16 would do"},
        {MODEL(",'kv_heads':4"), BATCH, 8, ",'grid':'3d','x':8,'y':1",
         "test.json:/stack/0/x: must divide the heads of keys and values, 4, got 8; 4 would do"},
        {MODEL(",'kv_heads':1"), BATCH, 4, ",'grid':'2d'",
         "test.json:/stack/0/x: must divide the heads of keys and values, 1, got 2; 1 would do"},
        {MODEL(""), BATCH, 3, ",'grid':'3d','x':1,'y':3",
         "test.json:/stack/0/y: must divide a side of a matrix, 64, got 3; 2 or 4 would do"},
        {MODEL(""), BATCH, 3, ",'grid':'3d','x':1,'y':1,'z':3",
         "test.json:/stack/0/z: must divide the samples of a micro-batch, 8, got 3; 2 or 4 would do"},
        {MODEL(""), BATCH, 4, ",'grid':'2d','z':1",
         "test.json:/stack/0/z: is for grid 2.5d and 3d, not 2d; leave it out"},
        {MODEL(""), BATCH, 4, ",'x':4", "test.json:/stack/0/x: is for grid 2d, 2.5d and 3d, not 1d; leave it out"},
        {MODEL(""), BATCH, 4, ",'grid':'2d','sequence':true",
         "test.json:/stack/0/sequence: is for grid 1d, not 2d; leave it out"},
        {MODEL(""), BATCH, 4, ",'grid':'3d','overlap_chunks':2",
         "test.json:/stack/0/overlap_chunks: is for grid 1d, not 3d; leave it out"},
        {MODEL(""), BATCH, 4, ",'overlap_chunks':3",
         "test.json:/stack/0/overlap_chunks: must divide the rows of a product, 256, got 3; 2 or 4 would do"},
        {MODEL(",'experts':4,'top_k':2"), BATCH, 4, ",'grid':'3d'",
         "test.json:/stack/0/grid: needs every product cut by columns or rows, and router of test is not; 1d would do"},
        {"resnet50", BATCH, 4, ",'grid':'2d'",
         "test.json:/stack/0: resnet50 has nothing that tensor ranks could divide; data would divide its samples"},
    };
    check_refusal(&(struct step){.workload = bad[_i].workload,
                                 .head = bad[_i].head,
                                 .stack = stack_of(bad[_i].ways, bad[_i].options)},
                  bad[_i].message);
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("tensor_grids");
    tcase_add_loop_test(tests, panels_move_the_volumes_of_optimus, 0, (int)DL_COUNT(summa_grids));
    tcase_add_loop_test(tests, a_product_is_done_by_panels, 0, (int)DL_COUNT(summa_grids));
    tcase_add_loop_test(tests, sums_of_branches_are_divided, 0, 2);
    tcase_add_loop_test(tests, panels_divide_work_activations_and_parameters, 0, (int)DL_COUNT(summa_grids));
    tcase_add_test(tests, panels_of_experts_are_those_of_a_rank);
    tcase_add_loop_test(tests, three_dimensions_move_the_volumes_of_axonn, 0, (int)DL_COUNT(axonn_grids));
    tcase_add_loop_test(tests, three_dimensions_divide_products_and_parameters, 0, (int)DL_COUNT(axonn_grids));
    tcase_add_loop_test(tests, rows_are_as_wide_as_a_rank_has_them, 0, (int)DL_COUNT(row_cases));
    tcase_add_test(tests, a_grid_of_one_dimension_is_a_line);
    tcase_add_loop_test(tests, weight_gradients_keep_their_collectives, 0, 2);
    tcase_add_loop_test(tests, groups_in_step_share_their_links, 0, 3);
    tcase_add_loop_test(tests, what_does_not_divide_is_refused, 0, 14);
    Suite *const suite = suite_create("tensor_grids");
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
