# %% flop_of_a_step
def flop_of_a_step(batch, seq, layers, hidden, vocab):
    """Flop of one step with full recomputation, as the paper counts it (equation 3)."""
    return 96 * batch * seq * layers * hidden**2 * (1 + seq / (6 * hidden) + vocab / (16 * layers * hidden))

# %% bubble_share
def bubble_share(devices, tensor, pipeline, batch, microbatch):
    """Bubble over work: (p - 1) / m."""
    replicas = devices / (tensor * pipeline)
    return (pipeline - 1) / (batch / (replicas * microbatch))

# %% state_bytes
def state_bytes(block_parameters, devices, tensor, pipeline, zero=False):
    """Bytes of weights, gradients and optimizer states on a device of a middle stage."""
    replicas = devices / (tensor * pipeline)
    return block_parameters / (tensor * pipeline) * (2 + 4 + 12 / (replicas if zero else 1))

# %% better_choice
# Fewer stages mean a smaller bubble but more parameters on each: ZeRO makes room for them. Interleaving divides the
# bubble by `chunks`. Fewer tensor ranks mean fewer bytes to sum and more to store: 4 x 32 just fits.
choice = {"tensor": 4, "pipeline": 32, "chunks": 4}

# %% training_days
def training_days(tokens, parameters, devices, flop_per_s):
    # 8 flop for each parameter and token: 2 forward, 4 backward, and 2 for the forward that is recomputed. Without
    # recomputation it would be 6.
    return 8 * tokens * parameters / (devices * flop_per_s) / 86400
