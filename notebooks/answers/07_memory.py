# %% zero_states
def states(psi: float, n: int, stage: int) -> float:
    whole, cut = {0: (16, 0), 1: (4, 12), 2: (2, 14), 3: (0, 16)}[stage]
    return psi * (whole + cut / n)

# %% zero_volume
def passes(stage: int, m: int) -> int:
    return {1: 2, 2: m + 1, 3: 3 * m}[stage]

# %% gpt3_activations
s, h, a, t = 2048, 12288, 96, 8
in_flight, blocks_of_a_stage = 8, 96 // 8
gigabytes = in_flight * blocks_of_a_stage * s * h * (10 + 24 / t + 5 * a * s / (h * t)) / 1e9

# %% right_root
def best_k(L: int, a: int = 64, s: int = 2048, h: int = 6144, t: int = 8) -> float:
    return (L * 2 / (10 + 24 / t + 5 * a * s / (h * t))) ** 0.5

# %% bearable
sequences = 32
