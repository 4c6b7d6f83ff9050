# %% ridge
def ridge(device: str, precision: str = "bf16") -> float:
    figures = dlsim.show(device, kind="device")["derived"]
    return figures[f"peak_{precision}_flop_per_s"] / figures["memory_bytes_per_s"]

# %% gemm_intensity
def gemm_intensity(m: int, n: int, k: int, element_bytes: int = 2) -> float:
    return 2 * m * n * k / (element_bytes * (m * k + k * n + m * n))

# %% amdahl_step
def amdahl_step(kernels: pd.DataFrame) -> float:
    memory_bound = kernels["flop"] == 0
    return kernels.loc[~memory_bound, "device_s"].sum() + kernels.loc[memory_bound, "device_s"].sum() / 2

# %% softmax_rate
def softmax_rate(peak_flop_per_s: float, memory_bytes_per_s: float) -> float:
    intensity = 5 / (2 + 2)
    return min(peak_flop_per_s, intensity * memory_bytes_per_s)

# %% deepest
low, high = 48, 1024  # fits, does not fit
while high - low > 1:
    middle = (low + high) // 2
    low, high = (middle, high) if fits(middle) else (low, middle)
deepest = low
