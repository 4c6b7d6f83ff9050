"""Random stacks of strategies on small machines: mostly what can be, and now and then what is refused."""
import json
import math
import random

SCHEDULES = {"1f1b": 1, "gpipe": 1, "interleaved": 2, "breadth-first": 2, "zb-h1": 1, "zb-2p": 1, "zbv": 2,
             "dualpipe": 2}  # with the parts that each needs
WIDE, OLD, TPU = ("fp32", "fp16", "bf16"), ("fp32", "fp16"), ("bf16",)
MACHINES = (("dgx-a100-hdr4", 64, WIDE), ("dgx-h100", 32, WIDE), ("dgx1-v100", 32, OLD), ("frontier", 64, WIDE),
            ("summit", 24, OLD), ("h200x8", 8, WIDE), ("perlmutter", 32, WIDE), ("tpu-v5e", 16, TPU),
            ("meta-h100-roce", 64, WIDE))
UNFUSED = ("megatron-2021", "megatron-deepspeed", "deepspeed-2021")
FUSED = ("ideal", "megatron-core", "pytorch-eager", "torchtitan", "fsdp", "llama3", "megatron-bridge", "nanotron",
         "pytorch-transformers", "gpt-neox")
SETTINGS = ("software.step_barrier=false", 'software.sends="blocking"', 'software.sends="batched"',
            "software.scatters_sends=false", "software.drains_at_sends=true", "software.drains_at_receives=true",
            "software.batches_without_chunks=true", "software.flat_gathers=true", "software.gathers_key_heads=true",
            'software.operands=[{"precision":"bf16","moves":2,"launches":1,"pads":true}]')
CONVNET = {"schema": "dlsim/workload/1", "source": "a test", "kind": "convnet", "input": [3, 64, 64],
           "layers": [{"kind": "conv", "filters": 64, "window": 3, "pad": 1, "batchnorm": True, "relu": True},
                      {"kind": "repeat", "times": 3,
                       "layers": [{"kind": "conv", "filters": 64, "window": 3, "pad": 1, "relu": True}]},
                      {"kind": "global_pool"}, {"kind": "fc", "outputs": 10}, {"kind": "cross_entropy"}]}


def _flag(rng):
    return rng.random() < 0.5


def _workload(rng, kind, blocks):
    if kind == "convnet":
        return CONVNET
    if kind == "mlp":
        return {"schema": "dlsim/workload/1", "source": "a test", "kind": "mlp", "widths": [512] * (2 * blocks + 1),
                "loss": "cross_entropy"}
    model = {"schema": "dlsim/workload/1", "source": "a test", "kind": "transformer", "layers": blocks, "hidden": 1024,
             "heads": 16, "seq": 512, "vocab": 4096, "tied_embedding": _flag(rng), "dropout": _flag(rng)}
    if kind == "llama":
        model |= {"norm": "rmsnorm", "activation": "swiglu", "positions": "rotary", "bias": False,
                  "kv_heads": rng.choice((8, 8, 2, 1)), "ffn": 2816}
    if kind == "experts":
        model |= {"experts": 8, "top_k": 2, "expert_ffn": 1024, "shared_experts": rng.randrange(2),
                  "dense_layers": rng.randrange(2)}
    return model


def _ways(rng, kind, most):
    """Ways of each axis whose product is at most `most`."""
    while True:
        ways = {"pipeline": rng.choice((1, 1, 2, 3, 4)), "data": rng.choice((1, 2, 2, 3, 4)), "tensor": 1, "context": 1}
        if kind != "convnet":
            ways["tensor"] = rng.choice((1, 1, 2, 4, 8))
        if kind not in ("convnet", "mlp"):
            ways["context"] = rng.choice((1, 1, 1, 2, 4))
        if math.prod(ways.values()) <= most:
            return ways


def _pipeline(rng, ways):
    schedule = rng.choice(list(SCHEDULES))
    chunks = SCHEDULES[schedule] if rng.random() < 0.9 else rng.randrange(1, 4)
    entry = {"name": "pipeline", "ways": ways, "schedule": schedule, "chunks": chunks}
    return entry | rng.choice(({}, {}, {"split": "count_ends"}, {"split": "by_cost"}, {"head": "alone"},
                               {"split": "by_weights"}, {"embedding": "alone"}))


def _tensor(rng, ways):
    lines = ({}, {"sequence": True}, {"sequence": True, "overlap_chunks": 2}, {"overlap_chunks": 4})
    grids = ({"grid": "2d"}, {"grid": "2.5d", "z": 2}, {"grid": "3d", "x": 2, "z": 2, "y": max(ways // 4, 1)},
             {"grid": "3d"})
    return {"name": "tensor", "ways": ways} | rng.choice(lines + lines + grids if ways >= 4 else lines)


def _data(rng, is_cut):
    ways = ({}, {}, {}, {"when": "micro"}, {"bucket_bytes": 2e6})
    alone = ({"exchange": "parameter_server", "servers": 2}, {"exchange": "parameter_server_serial"},
             {"exchange": "rings"}, {"exchange": "direct_ring"})
    return {"name": "data", "overlap": _flag(rng)} | rng.choice(ways if is_cut else ways + ways + alone)


def _zero(rng):
    entry = {"name": "zero", "stage": rng.randrange(1, 4)}
    more = ({}, {}, {"gather_bits": 8}, {"shard_ways": 2})
    if entry["stage"] == 3:
        more += ({"prefetch": rng.randrange(4)}, {"reshard": False})
    return entry | rng.choice(more)


def _others(rng, kind, ways):
    if ways["context"] > 1:
        yield {"name": "context", "ways": ways["context"], "kind": rng.choice(("ring", "allgather", "alltoall")),
               "zigzag": _flag(rng)}
    if kind == "experts" and ways["data"] % 2 == 0:
        travels = ({}, {"overlap": True}, {"dispatch": "to_nodes"}, {"imbalance": 1.5}, {"skew": 0.3, "seed": 3},
                   {"even": True})
        over = {"ways": 2 * ways["context"], "over_context": True}
        yield {"name": "expert", "ways": 2} | (over if ways["context"] > 1 and _flag(rng) else {}) | rng.choice(travels)
    if rng.random() < 0.15:
        yield {"name": "quantized_allreduce"} | rng.choice(({"bits": 4}, {"method": "one_bit"}, {"method": "top_k"}))
    if rng.random() < 0.15:
        yield {"name": "offload", "optimizer": rng.choice((0, 0.5, 1)), "parameters": rng.choice((0, 0.25)),
               "activations": rng.choice((0, 0.5, 1))}
    if rng.random() < 0.2:
        yield rng.choice(({"name": "blocking_launches"}, {"name": "graphs", "scope": "step"},
                          {"name": "graphs", "scope": "outside_experts"}))


def _stack(rng, kind, ways):
    is_cut = rng.random() < 0.4
    yield _data(rng, is_cut)
    if ways["pipeline"] > 1:
        yield _pipeline(rng, ways["pipeline"])
    if ways["tensor"] > 1:
        yield _tensor(rng, ways["tensor"])
    if is_cut:
        yield _zero(rng)
    yield from _others(rng, kind, ways)


def _strategy(rng, kind, ways, precisions):
    rows = 8 if kind in ("mlp", "convnet") else 1  # of a sample there are more in the others
    micros, microbatch = ways["pipeline"] * rng.randrange(1, 4), rows * rng.randrange(1, 5)
    strategy = {"schema": "dlsim/strategy/1", "source": "a test", "workload": "./workload.json",
                "software": rng.choice(FUSED if ways["context"] > 1 else FUSED + UNFUSED),
                "devices": math.prod(ways.values()), "global_batch": ways["data"] * micros * microbatch,
                "microbatch": microbatch, "precision": rng.choice(precisions),
                "optimizer": rng.choice(("sgd", "momentum", "adam", "lamb")),
                "recompute": rng.choice(("none", "none", "full", "full" if rows > 1 else "selective")),
                "stack": list(_stack(rng, kind, ways))}
    if rng.random() < 0.3:
        order = ["tensor", "context", "data", "pipeline"]
        rng.shuffle(order)
        strategy["order"] = order
    return strategy


def draw(index):
    """Options of a run, those of what is simulated alone, and files: its strategy and its workload."""
    rng = random.Random(f"stack {index}")
    machine, most, precisions = rng.choice(MACHINES)
    kind = rng.choice(("gpt", "gpt", "llama", "experts", "mlp", "convnet"))
    ways = _ways(rng, kind, most)
    blocks = ways["pipeline"] * rng.randrange(2, 5) + rng.choice((0, 0, 1))
    options = ["--topo", machine, "--strategy", "./strategy.json"]
    if rng.random() < 0.1:
        options += ["--fidelity", "step"]
    if rng.random() < 0.2:
        options += ["--set", rng.choice(SETTINGS)]
    more = ["--iterations", "2"] if rng.random() < 0.15 else []
    files = (("strategy.json", json.dumps(_strategy(rng, kind, ways, precisions))),
             ("workload.json", json.dumps(_workload(rng, kind, blocks))))
    return options, more, files
