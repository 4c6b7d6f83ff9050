# %% megatron_mlp
def shards(A: np.ndarray, B: np.ndarray, t: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """The parts (A_i, B_i) of each device i < t."""
    return list(zip(np.split(A, t, axis=1), np.split(B, t, axis=0)))

# %% summa_volume
def summa_bytes(p: int, tokens: float, h: float) -> float:
    return 2 * 3 * (7 * tokens * h + 12 * h**2) / p**0.5

# %% crossover
crossover = 9  # 21 / sqrt(p) < 8 (p - 1) / p first holds for the square 9: 7 < 7.1

# %% best_grid
def best_grid(p: int, tokens: float, h: int = WIDTH) -> tuple[int, int, int]:
    powers = [2**i for i in range(p.bit_length())]
    grids = [(x, y, p // x // y) for x in powers for y in powers if p % (x * y) == 0]
    return min(grids, key=lambda grid: volume_3d(tokens, *grid, h=h))

# %% norms
before, after = selene(ways=8).causes, selene(ways=8, sequence=True).causes
compute_saved_ms = 1e3 * (before["compute"] - after["compute"])
communication_added_ms = 1e3 * (after["sequence"] - before["tensor"])
