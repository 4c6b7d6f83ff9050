# %% fill_in
def full_at(k: float) -> int:
    return int(np.ceil(np.log(0.5) / np.log(1 - k)))

# %% break_even
def break_even(r: float, c: float) -> float:
    return (1 - 1 / r) / (2 * c)

# %% amdahl
def share(S: float, C: float) -> float:
    return (1 - 1 / S) / (1 - 1 / C)

# %% sparse_bytes
picked = 7 * 16 / 512
as_dlsim_counts = 7 / (picked * 8)
as_packed_tightly = 7 / (picked * 13 / 8)

# %% error_feedback
def compress(gradient: np.ndarray, memory: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    sent = top(gradient + memory)
    return sent, gradient + memory - sent
