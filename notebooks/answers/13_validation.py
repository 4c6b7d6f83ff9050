# %% median_interval
def median_interval(samples):
    """(low, high): 95 % interval of the median, of ordered samples."""
    ordered = np.sort(samples)
    n = len(ordered)
    low, high = np.floor(n / 2 - 0.98 * np.sqrt(n)), np.ceil(n / 2 + 0.98 * np.sqrt(n))
    return ordered[max(int(low) - 1, 0)], ordered[min(int(high), n) - 1]  # ranks count from 1

# %% latency_bandwidth
def latency_bandwidth(sizes, seconds):
    """alpha (s) and beta (s/byte) of least relative squares."""
    sizes, seconds = np.asarray(sizes, float), np.asarray(seconds, float)
    rows = np.column_stack([1 / seconds, sizes / seconds])
    alpha, beta = np.linalg.lstsq(rows, np.ones(len(sizes)), rcond=None)[0]
    return alpha, beta

# %% errors
def errors(measured_s, predicted_s):
    """(mean absolute, mean signed) error, as fractions of the measured time."""
    relative = predicted_s / measured_s - 1
    return np.abs(relative).mean(), relative.mean()

# %% best_factor
def best_factor(measured_s, predicted_s):
    r = predicted_s / measured_s
    return r.sum() / (r**2).sum()

# %% ratio_interval
def ratio_interval(t1, w1, t2, w2):
    """(low, high) of t1 / t2."""
    half = np.sqrt(np.log(w1) ** 2 + np.log(w2) ** 2)
    return t1 / t2 * np.exp(-half), t1 / t2 * np.exp(half)
