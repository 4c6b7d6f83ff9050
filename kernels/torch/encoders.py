"""Encoders: BERT (norms behind the residuals, masked-language-model head) and vision transformers as torchvision has them."""
import torch
from torch import nn
from torch.nn import functional as F

# layers, hidden, heads, sequence, vocabulary
BERT = {"bert-base": (12, 768, 12, 512, 30522), "bert-large": (24, 1024, 16, 512, 30522)}
VISION = {"vit-b16": "vit_b_16", "vit-l16": "vit_l_16"}


class Layer(nn.Module):
    def __init__(self, hidden, heads, dropout):
        super().__init__()
        self.heads, self.p = heads, dropout
        self.q, self.k, self.v, self.o = (nn.Linear(hidden, hidden) for _ in range(4))
        self.fc1, self.fc2 = nn.Linear(hidden, 4 * hidden), nn.Linear(4 * hidden, hidden)
        self.norm1, self.norm2 = nn.LayerNorm(hidden), nn.LayerNorm(hidden)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        b, s, hidden = x.shape
        q, k, v = (part(x).view(b, s, self.heads, hidden // self.heads).transpose(1, 2) for part in (self.q, self.k, self.v))
        a = F.scaled_dot_product_attention(q, k, v, dropout_p=self.p if self.training else 0.0)
        x = self.norm1(x + self.dropout(self.o(a.transpose(1, 2).reshape(b, s, hidden))))
        return self.norm2(x + self.dropout(self.fc2(F.gelu(self.fc1(x)))))


class Bert(nn.Module):
    def __init__(self, layers, hidden, heads, seq, vocab, dropout):
        super().__init__()
        self.vocab = vocab
        self.tokens, self.positions, self.types = nn.Embedding(vocab, hidden), nn.Embedding(seq, hidden), nn.Embedding(2, hidden)
        self.norm, self.dropout = nn.LayerNorm(hidden), nn.Dropout(dropout)
        self.layers = nn.ModuleList(Layer(hidden, heads, dropout) for _ in range(layers))
        self.transform, self.transform_norm = nn.Linear(hidden, hidden), nn.LayerNorm(hidden)
        self.head = nn.Linear(hidden, vocab)
        self.head.weight = self.tokens.weight

    def forward(self, ids, target):
        at = torch.arange(ids.shape[1], device=ids.device)
        x = self.tokens(ids) + self.positions(at) + self.types(torch.zeros_like(ids))
        x = self.dropout(self.norm(x))
        for layer in self.layers:
            x = layer(x)
        logits = self.head(self.transform_norm(F.gelu(self.transform(x))))
        return F.cross_entropy(logits.view(-1, self.vocab), target.view(-1))


def make(name, batch, dropout):
    layers, hidden, heads, seq, vocab = BERT[name]
    ids = torch.randint(vocab, (batch, seq))
    return Bert(layers, hidden, heads, seq, vocab, dropout), (ids, torch.randint(vocab, (batch, seq)))
