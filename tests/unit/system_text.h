/* system_text.h - small JSON texts for tests, written with ' for ", and the fixture that holds what they become. */
#ifndef DL_TESTS_SYSTEM_TEXT_H
#define DL_TESTS_SYSTEM_TEXT_H

#include <check.h>
#include <string.h>

#include "topologies/topology.h"

struct fixture {
    struct dl_arena *arena;
    struct dl_json doc;
    struct dl_error err;
};

static inline void fixture_open(struct fixture *f, const char *text)
{
    *f = (struct fixture){.arena = dl_arena_new()};
    char *const json = dl_arena_string(f->arena, text);
    for (char *c = json; *c; c++)
        if (*c == '\'') *c = '"';
    ck_assert_msg(!dl_json_parse(json, strlen(json), "test.json", f->arena, &f->doc, &f->err), "%s", f->err.text);
}

static inline void fixture_close(struct fixture *f)
{
    json_decref(f->doc.value);
    dl_arena_free(f->arena);
}

/* NVLink of the DGX-1V: six lanes a GPU (NVIDIA DGX-1 With Tesla V100 System Architecture, WP-08437, figure 4). */
#define CUBE_MESH_PAIRS                                                                                                \
    "[[0,1,1],[0,2,1],[0,3,2],[0,4,2],[1,2,2],[1,3,1],[1,5,2],[2,3,1],[2,6,2],[3,7,2],[4,5,1],[4,6,1],[4,7,2],"        \
    "[5,6,2],[5,7,1],[6,7,1]]"
#define CUBE_MESH(forwards)                                                                                            \
    "{'kind':'mesh','pairs':" CUBE_MESH_PAIRS ",'lane_bytes_per_s':25e9,'latency_s':7e-7,'link':'nvlink2'," forwards   \
    "'facts':{'*':'assumed: a test'}}"
#define PCIE_TREE                                                                                                      \
    "{'kind':'pcie','sockets':2,'switches':4,'bandwidth_bytes_per_s':16e9,'switch_bandwidth_bytes_per_s':16e9,"        \
    "'socket_bandwidth_bytes_per_s':20e9,'socket_latency_s':5e-7,'latency_s':3e-7,'link':'pcie3'}"
#define NVSWITCH                                                                                                       \
    "{'kind':'switch','bandwidth_bytes_per_s':300e9,'lanes':12,'reduces':true,'latency_s':5e-7,'link':'nvlink3'}"
/* xGMI between the dies of four MI250X (OLCF Frontier user guide, node diagram). */
#define XGMI_MESH                                                                                                      \
    "{'kind':'mesh','pairs':[[0,1,4],[2,3,4],[4,5,4],[6,7,4],[0,6,2],[2,4,2],[0,2,1],[4,6,1],[1,3,1],[1,5,1],[3,7,1]," \
    "[5,7,1]],'lane_bytes_per_s':50e9,'latency_s':6e-7,'link':'xgmi','forwards':true}"
#define NICS(count, attach)                                                                                            \
    "{'count':" count ",'attach':" attach ",'bandwidth_bytes_per_s':25e9,'latency_s':4e-7,'link':'pcie4'}"

#endif
