# %% conv_flop
def conv_flop(N: int, C: int, H: int, K: int, R: int, stride: int = 1, padding: int = 0) -> float:
    Q = (H + 2 * padding - R) // stride + 1
    return 2 * N * K * C * R**2 * Q**2

# %% im2col_bytes
def im2col_bytes(N: int, C: int, H: int, R: int) -> int:
    return 4 * N * C * R**2 * (H - R + 1) ** 2

# %% best_division
def best_division(T_mu: dict[int, float], b: int) -> tuple[float, list[int]]:
    best = {0: (0.0, 0)}  # by samples: the least time, and the last part
    for samples in range(1, b + 1):
        candidates = [(best[samples - part][0] + T_mu[part], part) for part in T_mu if samples - part in best]
        if candidates:
            best[samples] = min(candidates)
    parts, left = [], b
    while left:
        parts.append(best[left][1])
        left -= parts[-1]
    return best[b][0], parts

# %% choose
def fastest_that_fits(workload: str) -> int:
    answers = dlsim.runs(
        dict(topo="dgx1-v100", strategy="single", workload=workload, software="pytorch-eager", engine="analytic",
             set={"global_batch": 256, "microbatch": n, "precision": "fp16", "optimizer": "momentum"}) for n in sizes)
    return answers[answers["fits"]].sort_values("step_s")["microbatch"].iloc[0]

best_resnet50 = fastest_that_fits("resnet50")
best_vgg19 = fastest_that_fits("vgg19")

# %% winograd_saving
def winograd_saving(m: int, r: int) -> float:
    return m**2 * r**2 / (m + r - 1) ** 2
