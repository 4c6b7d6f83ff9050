"""Decoders like Llama (RMSNorm, rotary positions, SwiGLU, grouped queries) and mixtures of experts, in two ways of writing
them: `plain` calls what torch.nn has (nn.RMSNorm, attention with grouped queries), `transformers` does what the library of
that name does: norms in fp32 by hand, keys and values repeated, the loss on logits in fp32."""
import torch
from torch import nn
from torch.nn import functional as F

# layers, hidden, ffn, heads, kv_heads, sequence, vocabulary, tied embedding, experts, experts of a token
DECODERS = {
    "tinyllama-1.1b": (22, 2048, 5632, 32, 4, 2048, 32000, False, 0, 0),
    "llama3.2-1b": (16, 2048, 8192, 32, 8, 2048, 128256, True, 0, 0),
    "llama3.2-3b": (28, 3072, 8192, 24, 8, 2048, 128256, True, 0, 0),
    "llama2-7b": (32, 4096, 11008, 32, 32, 4096, 32000, False, 0, 0),
    "llama3-8b-2k": (32, 4096, 14336, 32, 8, 2048, 128256, False, 0, 0),
    "mixtral-1b": (12, 1024, 3584, 16, 4, 2048, 32000, False, 8, 2),
    "moe-8-1": (12, 1024, 3584, 16, 4, 2048, 32000, False, 8, 1),
    "moe-16-4": (10, 1280, 2048, 20, 5, 2048, 50304, False, 16, 4),
    "moe-32-2": (8, 1024, 1024, 16, 4, 2048, 32000, False, 32, 2),
    "smollm-360m": (32, 960, 2560, 15, 5, 2048, 49152, True, 0, 0),
    "qwen2.5-1.5b": (28, 1536, 8960, 12, 2, 4096, 151936, True, 0, 0),
    "mistral-7b": (32, 4096, 14336, 32, 8, 4096, 32000, False, 0, 0),
}
ROTARY_BASE, EPS = 500000.0, 1e-5


class NormByHand(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(hidden))

    def forward(self, x):
        return norm_by_hand(x, self.weight)


def norm_by_hand(x, weight):
    wide = x.float()
    wide = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + EPS)
    return weight * wide.to(x.dtype)


def rotate_half(x):
    half = x.shape[-1] // 2
    return torch.cat((-x[..., half:], x[..., :half]), dim=-1)


def repeated(x, times):
    """(batch, kv heads, tokens, size) -> (batch, heads, tokens, size), copied."""
    if times == 1:
        return x
    b, h, s, d = x.shape
    return x[:, :, None].expand(b, h, times, s, d).reshape(b, h * times, s, d)


class Attention(nn.Module):
    def __init__(self, hidden, heads, kv_heads, by_hand):
        super().__init__()
        self.heads, self.kv_heads, self.size, self.by_hand = heads, kv_heads, hidden // heads, by_hand
        self.q = nn.Linear(hidden, hidden, bias=False)
        self.k = nn.Linear(hidden, kv_heads * self.size, bias=False)
        self.v = nn.Linear(hidden, kv_heads * self.size, bias=False)
        self.o = nn.Linear(hidden, hidden, bias=False)

    def forward(self, x, cos, sin):
        b, s, hidden = x.shape
        q = self.q(x).view(b, s, self.heads, self.size).transpose(1, 2)
        k = self.k(x).view(b, s, self.kv_heads, self.size).transpose(1, 2)
        v = self.v(x).view(b, s, self.kv_heads, self.size).transpose(1, 2)
        q = q * cos + rotate_half(q) * sin
        k = k * cos + rotate_half(k) * sin
        if self.by_hand:
            k, v = (repeated(part, self.heads // self.kv_heads) for part in (k, v))
            a = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            a = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=self.heads != self.kv_heads)
        return self.o(a.transpose(1, 2).reshape(b, s, hidden))


class Gated(nn.Module):
    def __init__(self, hidden, ffn):
        super().__init__()
        self.gate, self.up = nn.Linear(hidden, ffn, bias=False), nn.Linear(hidden, ffn, bias=False)
        self.down = nn.Linear(ffn, hidden, bias=False)

    def forward(self, x):
        return self.down(F.silu(self.gate(x)) * self.up(x))


class Experts(nn.Module):
    """One expert after the other on the tokens that chose it, as transformers does it for Mixtral."""

    def __init__(self, hidden, ffn, n, top_k):
        super().__init__()
        self.router, self.top_k = nn.Linear(hidden, n, bias=False), top_k
        self.experts = nn.ModuleList(Gated(hidden, ffn) for _ in range(n))

    def forward(self, x):
        flat = x.view(-1, x.shape[-1])
        weights, chosen = torch.topk(F.softmax(self.router(flat), dim=1, dtype=torch.float), self.top_k, dim=-1)
        weights = (weights / weights.sum(dim=-1, keepdim=True)).to(flat.dtype)
        out = torch.zeros_like(flat)
        mask = F.one_hot(chosen, num_classes=len(self.experts)).permute(2, 1, 0)
        for i, expert in enumerate(self.experts):
            slot, token = torch.where(mask[i])
            out.index_add_(0, token, (expert(flat[token]) * weights[token, slot, None]).to(out.dtype))
        return out.view(x.shape)


class Block(nn.Module):
    def __init__(self, hidden, ffn, heads, kv_heads, experts, top_k, by_hand):
        super().__init__()
        norm = NormByHand if by_hand else lambda n: nn.RMSNorm(n, eps=EPS)
        self.norm1, self.norm2 = norm(hidden), norm(hidden)
        self.attention = Attention(hidden, heads, kv_heads, by_hand)
        self.mlp = Experts(hidden, ffn, experts, top_k) if experts else Gated(hidden, ffn)

    def forward(self, x, cos, sin):
        x = x + self.attention(self.norm1(x), cos, sin)
        return x + self.mlp(self.norm2(x))


class Decoder(nn.Module):
    def __init__(self, layers, hidden, ffn, heads, kv_heads, seq, vocab, tied, experts, top_k, by_hand):
        super().__init__()
        self.by_hand, self.size, self.vocab = by_hand, hidden // heads, vocab
        self.tokens = nn.Embedding(vocab, hidden)
        self.blocks = nn.ModuleList(Block(hidden, ffn, heads, kv_heads, experts, top_k, by_hand) for _ in range(layers))
        self.norm = NormByHand(hidden) if by_hand else nn.RMSNorm(hidden, eps=EPS)
        self.head = nn.Linear(hidden, vocab, bias=False)
        if tied:
            self.head.weight = self.tokens.weight

    def angles(self, seq, x):
        frequency = 1.0 / ROTARY_BASE ** (torch.arange(0, self.size, 2, device=x.device).float() / self.size)
        angle = torch.outer(torch.arange(seq, device=x.device).float(), frequency)
        angle = torch.cat((angle, angle), dim=-1)
        return angle.cos().to(x.dtype), angle.sin().to(x.dtype)

    def forward(self, ids, target):
        x = self.tokens(ids)
        cos, sin = self.angles(ids.shape[1], x)
        for block in self.blocks:
            x = block(x, cos, sin)
        logits = self.head(self.norm(x)).view(-1, self.vocab)
        return F.cross_entropy(logits.float() if self.by_hand else logits, target.view(-1))


def make(name, batch, by_hand):
    shape = DECODERS[name]
    ids = torch.randint(shape[6], (batch, shape[5]))
    return Decoder(*shape, by_hand), (ids, torch.randint(shape[6], (batch, shape[5])))
