# %% alpha_beta
small, large = 1e3, 1e9
beta = (message_s(large) - message_s(small)) / (large - small)
alpha = message_s(small) - small * beta

# %% costs
def rabenseifner(p: int, n: float, alpha: float, beta: float, gamma: float) -> float:
    return 2 * log2(p) * alpha + (p - 1) / p * n * (2 * beta + gamma)

def ring(p: int, n: float, alpha: float, beta: float, gamma: float) -> float:
    return 2 * (p - 1) * alpha + (p - 1) / p * n * (2 * beta + gamma)

# %% crossover
def crossover_bytes(p: int, alpha: float, beta: float, gamma: float) -> float:
    saved = log2(p) * (beta + gamma) - (p - 1) / p * (2 * beta + gamma)  # seconds per byte
    return log2(p) * alpha / saved

# %% bus_bandwidth
def bus_bandwidth(p: int, n: float, t: float) -> float:
    return 2 * (p - 1) / p * n / t

# %% smallest_bucket
def smallest_bucket(p: int, alpha: float, beta: float) -> float:
    return 10 * 2 * log2(p) * alpha / (2 * (p - 1) / p * beta)
