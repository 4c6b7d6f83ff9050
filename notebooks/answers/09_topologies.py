# %% taper
def taper(network: dict, nics: int) -> float:
    """`network` has groups, nodes_per_group, links_per_group_pair, global_bandwidth_bytes_per_s and bandwidth_bytes_per_s (of a NIC)."""
    leaves = (network["groups"] - 1) * network["links_per_group_pair"] * network["global_bandwidth_bytes_per_s"]
    return leaves / (network["nodes_per_group"] * nics * network["bandwidth_bytes_per_s"])

# %% ring_of_four
def narrowest(four: list[int]) -> int:
    rings = [(four[0], *rest) for rest in itertools.permutations(four[1:])]
    return max(min(LANES.get(frozenset((ring[i], ring[(i + 1) % 4])), 0) for i in range(4)) for ring in rings)

# %% count_nics
def alltoall_seconds(p: int, k: int, n: float, rate: float) -> float:
    leaves_a_node = k * n * (p - k) / p
    return leaves_a_node / (min(k, 4) * rate)

# %% four_cables
def between_groups_seconds(k: int, n: float, rate: float, cables: int = 4) -> float:
    devices_of_a_group = 4 * k
    crosses = devices_of_a_group * n / 2
    return crosses / (cables * rate)

# %% second_best_order
best = ("data", "tensor", "pipeline")  # two replicas and four tensor ranks share a node
