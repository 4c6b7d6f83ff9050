"""The models whose training steps are timed: GPT as a plain module, decoders and encoders of decoders.py and encoders.py,
networks for images as torchvision has them."""
import torch
from torch import nn
from torch.nn import functional as F

import decoders
import encoders

# layers, hidden, heads, sequence; as workloads/models/*.json
GPT = {
    "gpt2-125m": (12, 768, 12, 1024),
    "gpt2-355m": (24, 1024, 16, 1024),
    "gpt2-774m": (36, 1280, 20, 1024),
    "gpt2-1.5b": (48, 1600, 25, 1024),
    "gpt3-2.7b": (32, 2560, 32, 2048),
    "gpt3-6.7b": (32, 4096, 32, 2048),
}
# hidden, heads, head size, ffn of one of 8 tensor-parallel ranks
SHARD = {
    "gpt-22b-shard": (6144, 8, 96, 3072),
    "gpt-175b-shard": (12288, 12, 128, 6144),
    "gpt-530b-shard": (20480, 16, 160, 10240),
    "gpt-1t-shard": (25600, 20, 160, 12800),
}
SHARD_LAYERS, SHARD_SEQ = 4, 2048
VOCAB = 50257
CNN = {"resnet50": "resnet50", "resnet152": "resnet152", "vgg19": "vgg19", "alexnet": "alexnet",
       "googlenet": "googlenet", "densenet121": "densenet121", "resnext50": "resnext50_32x4d",
       "resnext101": "resnext101_64x4d", "wide-resnet50": "wide_resnet50_2", "wide-resnet101": "wide_resnet101_2",
       "resnet101": "resnet101"}
IMAGES = CNN | encoders.VISION
CLASSES = 1000


class Block(nn.Module):
    def __init__(self, hidden, heads, head, ffn, dropout):
        super().__init__()
        self.heads, self.head, self.p = heads, head, dropout
        self.norm1, self.norm2 = nn.LayerNorm(hidden), nn.LayerNorm(hidden)
        self.qkv, self.projection = nn.Linear(hidden, 3 * heads * head), nn.Linear(heads * head, hidden)
        self.fc1, self.fc2 = nn.Linear(hidden, ffn), nn.Linear(ffn, hidden)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        b, s, _ = x.shape
        q, k, v = (part.view(b, s, self.heads, self.head).transpose(1, 2)
                   for part in self.qkv(self.norm1(x)).split(self.heads * self.head, dim=2))
        a = F.scaled_dot_product_attention(q, k, v, is_causal=True, dropout_p=self.p if self.training else 0.0)
        x = x + self.dropout(self.projection(a.transpose(1, 2).reshape(b, s, self.heads * self.head)))
        return x + self.dropout(self.fc2(F.gelu(self.fc1(self.norm2(x)))))


class Gpt(nn.Module):
    def __init__(self, layers, hidden, heads, seq, dropout):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(VOCAB, hidden), nn.Embedding(seq, hidden)
        self.dropout = nn.Dropout(dropout)
        self.blocks = nn.ModuleList(Block(hidden, heads, hidden // heads, 4 * hidden, dropout) for _ in range(layers))
        self.norm = nn.LayerNorm(hidden)
        self.head = nn.Linear(hidden, VOCAB, bias=False)
        self.head.weight = self.tokens.weight

    def forward(self, ids, target):
        x = self.dropout(self.tokens(ids) + self.positions(torch.arange(ids.shape[1], device=ids.device)))
        for block in self.blocks:
            x = block(x)
        logits = self.head(self.norm(x))
        return F.cross_entropy(logits.view(-1, VOCAB), target.view(-1))


class Shard(nn.Module):
    """Blocks of one tensor-parallel rank, without the communication."""

    def __init__(self, hidden, heads, head, ffn, dropout):
        super().__init__()
        self.blocks = nn.ModuleList(Block(hidden, heads, head, ffn, dropout) for _ in range(SHARD_LAYERS))

    def forward(self, x, target):
        for block in self.blocks:
            x = block(x)
        return (x * target).sum()


def network(name):
    """As torchvision has it, with random weights."""
    import torchvision
    extra = {"aux_logits": False, "init_weights": False} if name == "googlenet" else {}
    return getattr(torchvision.models, name)(weights=None, **extra)


class Classifier(nn.Module):
    def __init__(self, name):
        super().__init__()
        self.net = network(name)

    def forward(self, images, target):
        return F.cross_entropy(self.net(images), target)


def make(name, batch, dropout, by_hand=False):
    """The module and one batch of inputs, on the GPU."""
    with torch.device("cuda"):
        if name in decoders.DECODERS:
            return decoders.make(name, batch, by_hand)
        if name in encoders.BERT:
            return encoders.make(name, batch, dropout)
        if name in GPT:
            layers, hidden, heads, seq = GPT[name]
            ids = torch.randint(VOCAB, (batch, seq))
            return Gpt(layers, hidden, heads, seq, dropout), (ids, torch.randint(VOCAB, (batch, seq)))
        if name in SHARD:
            x = torch.randn(batch, SHARD_SEQ, SHARD[name][0])
            return Shard(*SHARD[name], dropout), (x, torch.randn_like(x))
        images = torch.randn(batch, 3, 224, 224).to(memory_format=torch.channels_last)
        net = Classifier(IMAGES[name]).to(memory_format=torch.channels_last)
        return net, (images, torch.randint(CLASSES, (batch,)))
