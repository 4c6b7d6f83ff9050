# %% stream_s
def stream_s(parameters, stream_bytes_per_s):
    """Seconds that weights and gradients need between the wafer and the memory outside."""
    # 2 bytes in for the forward, 2 in for the backward, 2 out for gradients.
    return 6 * parameters / stream_bytes_per_s

# %% enough_tokens
def enough_tokens(peak_flop_per_s, fraction, stream_bytes_per_s):
    # 6 P tokens / (fraction peak) = 6 P / stream: the model drops out.
    return fraction * peak_flop_per_s / stream_bytes_per_s

# %% wafer_settings
# Full recomputation keeps only the input of each block: 16 sequences fit, and the stream is hidden by arithmetic.
settings = {"global_batch": 16, "recompute": "full"}

# %% torus_allreduce_s
def torus_allreduce_s(nbytes, dimensions, link_bytes_per_s):
    """Least time of an all-reduce on a torus whose dimensions are all rings, by bandwidth alone."""
    p = np.prod(dimensions)
    return 2 * (p - 1) / p * nbytes / (2 * len(dimensions) * link_bytes_per_s)

# %% robust_batch
# With 4 sequences the wafer waits for the stream of weights, however fast its cores are.
batch = 4
