# %% expert_parameters
def expert_parameters(layers, hidden, ffn, experts):
    """Parameters of `experts` experts in each of `layers` blocks."""
    return layers * experts * 3 * hidden * ffn

# %% alltoalls_of_a_step
def alltoalls_of_a_step(blocks, microbatches):
    """How many all-to-alls a rank takes part in."""
    return blocks * microbatches * 2 * 2  # out and back, forward and backward

def alltoall_bytes(tokens, top_k, hidden):
    """Buffer of one of them, in bf16."""
    return tokens * top_k * hidden * 2

# %% chance_skew
def chance_skew(choices, experts):
    """Standard deviation over mean of the load of one expert."""
    # Binomial: mean n/e, variance n (1/e) (1 - 1/e).
    return ((experts - 1) / choices) ** 0.5

# %% dropped_share
def dropped_share(loads, capacity_factor):
    """Share of all choices that find their expert full."""
    loads = np.asarray(loads)
    return np.maximum(loads - capacity_factor * loads.mean(), 0).sum() / loads.sum()

# %% crossover_length
def crossover_length(weights, layers, hidden):
    """`weights`: all weights that a token is multiplied with (head included, embedding not)."""
    # 2 weights = 2 s h l
    return weights / (layers * hidden)

# %% last_rank
def last_rank(ranks):
    """Attention work of the last rank over the mean."""
    # c - 1 whole pairs and a half, over the mean of (c - 1) / 2 and a half: (2c - 1) / c.
    return (2 * ranks - 1) / ranks
