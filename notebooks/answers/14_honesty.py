# %% envelope_mfu
def envelope_mfu(parameters, tokens_per_s, devices, peak_flop_per_s):
    return 6 * parameters * tokens_per_s / (devices * peak_flop_per_s)

# %% best_batch
def best_batch(t0, t1, critical_batch):
    # (t0 + B t1)(1 + C/B) = t0 + C t1 + B t1 + C t0 / B is least where t1 = C t0 / B^2.
    return (critical_batch * t0 / t1) ** 0.5

# %% factors_of_a_claim
def factors_of_a_claim(tokens_per_s):
    return [new / old for old, new in zip(tokens_per_s, tokens_per_s[1:])]

# %% expected_maximum
def expected_maximum(n, sigma, trials=20_000):
    return np.random.default_rng(0).normal(1, sigma, (trials, n)).max(axis=1).mean()

# %% runs_needed
def runs_needed(sigma, delta):
    # delta = 1.96 sigma sqrt(2 / n)
    return int(np.ceil(2 * (1.96 * sigma / delta) ** 2))
