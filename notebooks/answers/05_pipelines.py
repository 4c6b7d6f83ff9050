# %% bubble_share
def bubble_share(p: int, m: int, v: int = 1) -> float:
    """Idle share of the step of an ideal pipeline."""
    return (p - 1) / v / (m + (p - 1) / v)

# %% enough_microbatches
enough = 133  # 7 / (m + 7) <= 1 / 20

# %% one_f_one_b
def one_f_one_b(p: int, s: int, m: int) -> list[str]:
    warm_up = min(p - 1 - s, m)
    order = [f"F{k}" for k in range(warm_up)]
    for k in range(m - warm_up):
        order += [f"F{warm_up + k}", f"B{k}"]
    return order + [f"B{k}" for k in range(m - warm_up, m)]

# %% interleaved_memory
def memory_factor(p: int, v: int) -> float:
    return 1 + (p - 1) / (p * v)

# %% better_split
blocks = [9, 9, 8, 6]
