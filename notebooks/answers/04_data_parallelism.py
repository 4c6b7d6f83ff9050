# %% allreduce_bound
def allreduce_bound(parameters: float, m: int, network_bytes_per_s: float) -> float:
    return 2 * (m - 1) / m * 4 * parameters / network_bytes_per_s

# %% strong_speedup
def strong_speedup(T_1: float, t: float, p: int) -> float:
    return T_1 / (T_1 / p + t)

# %% overlapped_step
def overlapped_step(forward: float, backward: float, optimizer: float, allreduce: float) -> float:
    return forward + max(backward, allreduce) + optimizer

# %% server_seconds
def server_seconds(p: int, s: int, n: float, beta: float) -> float:
    return 2 * p * (n / s) * beta  # up, then down

# %% affordable
def affordable(B_crit: float, factor: float = 1.2) -> int:
    device_hours = E_min * (1 + 32 * frame.index / B_crit) / frame["samples_per_s"] * frame.index
    return int(device_hours.index[device_hours <= factor * device_hours.min()].max())
