"""Times training steps of transformers with an encoder and a decoder on one GPU.

    python3 kernels/torch/encoder_decoder.py OUT.json [CASES.json]

CASES.json (encoder_decoder_cases.json beside this file if absent) lists objects with `workload` (as in a workload file of
dlsim), samples, mode (bf16: all of it cast, or autocast; with a c behind it: compiled) and code: `plain`, as written here
(norms before each half, attention by scaled_dot_product_attention), `torch`, around PyTorch's nn.Transformer (norms behind),
or `t5`, what Hugging Face's transformers makes of such a workload. passes.py says what a case gives.
"""
import contextlib
import gc
import json
import os
import sys

import torch
from torch import nn
from torch.nn import functional as F

import passes

HERE = os.path.dirname(os.path.abspath(__file__))
ACTIVATIONS = {"relu": F.relu, "gelu": F.gelu}


class Attention(nn.Module):
    """Of queries from one sequence to keys and values of another, or of the same."""

    def __init__(self, w):
        super().__init__()
        hidden, self.heads, self.p = w["hidden"], w["heads"], 0.1 if w["dropout"] else 0.0
        self.q, self.k, self.v, self.o = (nn.Linear(hidden, hidden) for _ in range(4))

    def split(self, x):
        return x.view(x.shape[0], x.shape[1], self.heads, -1).transpose(1, 2)

    def forward(self, x, given, causal):
        q, k, v = self.split(self.q(x)), self.split(self.k(given)), self.split(self.v(given))
        a = F.scaled_dot_product_attention(q, k, v, dropout_p=self.p, is_causal=causal)
        return self.o(a.transpose(1, 2).reshape(x.shape))


class Block(nn.Module):
    def __init__(self, w, crosses):
        super().__init__()
        hidden, ffn = w["hidden"], w["ffn"]
        self.norm1, self.attention = nn.LayerNorm(hidden), Attention(w)
        self.cross_norm, self.cross = (nn.LayerNorm(hidden), Attention(w)) if crosses else (None, None)
        self.norm2, self.fc1, self.fc2 = nn.LayerNorm(hidden), nn.Linear(hidden, ffn), nn.Linear(ffn, hidden)
        self.function = ACTIVATIONS[w["activation"]]
        self.dropout = nn.Dropout(0.1 if w["dropout"] else 0.0)

    def forward(self, x, encoded=None):
        h = self.norm1(x)
        x = x + self.dropout(self.attention(h, h, encoded is not None))
        if encoded is not None:
            x = x + self.dropout(self.cross(self.cross_norm(x), encoded, False))
        return x + self.dropout(self.fc2(self.function(self.fc1(self.norm2(x)))))


class Words(nn.Module):
    """What both codes here have before the blocks and after them."""

    def __init__(self, w):
        super().__init__()
        hidden, self.vocab = w["hidden"], w["vocab"]
        self.tokens = nn.Embedding(self.vocab, hidden)
        self.positions = nn.Embedding(max(w["seq"], w["encoder_seq"]), hidden)
        self.dropout = nn.Dropout(0.1 if w["dropout"] else 0.0)
        self.head = nn.Linear(hidden, self.vocab, bias=False)
        if w["tied_embedding"]:
            self.head.weight = self.tokens.weight
        nn.init.normal_(self.tokens.weight, std=0.02)  # as GPT and BERT; with torch.nn's 1 most gradients vanish

    def embed(self, ids):
        at = torch.arange(ids.shape[1], device=ids.device)
        return self.dropout(self.tokens(ids) + self.positions(at))

    def loss(self, x, answers):
        return F.cross_entropy(self.head(x).view(-1, self.vocab), answers.view(-1))


class Plain(Words):
    def __init__(self, w):
        super().__init__(w)
        self.encoder = nn.ModuleList(Block(w, False) for _ in range(w["encoder_layers"]))
        self.decoder = nn.ModuleList(Block(w, True) for _ in range(w["layers"]))
        self.encoder_norm, self.norm = nn.LayerNorm(w["hidden"]), nn.LayerNorm(w["hidden"])

    def forward(self, texts, answers):
        encoded = self.embed(texts)
        for block in self.encoder:
            encoded = block(encoded)
        encoded = self.encoder_norm(encoded)
        x = self.embed(answers)
        for block in self.decoder:
            x = block(x, encoded)
        return self.loss(self.norm(x), answers)


class Torch(Words):
    def __init__(self, w):
        super().__init__(w)
        self.blocks = nn.Transformer(w["hidden"], w["heads"], w["encoder_layers"], w["layers"], w["ffn"], batch_first=True,
                                     dropout=0.1 if w["dropout"] else 0.0, activation=ACTIVATIONS[w["activation"]])
        mask = nn.Transformer.generate_square_subsequent_mask(w["seq"])
        self.register_buffer("mask", mask)

    def forward(self, texts, answers):
        return self.loss(self.blocks(self.embed(texts), self.embed(answers), tgt_mask=self.mask, tgt_is_causal=True), answers)


class T5(nn.Module):
    def __init__(self, w):
        super().__init__()
        import transformers
        project = {"relu": "relu", "geglu": "gated-gelu"}[w["activation"]]
        self.t5 = transformers.T5ForConditionalGeneration(transformers.T5Config(
            d_model=w["hidden"], d_ff=w["ffn"], d_kv=w["head_size"], num_heads=w["heads"], num_layers=w["encoder_layers"],
            num_decoder_layers=w["layers"], vocab_size=w["vocab"], feed_forward_proj=project, use_cache=False,
            dropout_rate=0.1 if w["dropout"] else 0.0, tie_word_embeddings=w["tied_embedding"], pad_token_id=0,
            decoder_start_token_id=0))

    def forward(self, texts, answers):
        return self.t5(input_ids=texts, labels=answers).loss


class Step(passes.Step):
    def __init__(self, case):
        w = case["workload"]
        is_cast = not case["mode"].startswith("autocast")
        dtype = torch.bfloat16 if is_cast else torch.float32
        with torch.device("cuda"):
            self.model = {"plain": Plain, "torch": Torch, "t5": T5}[case["code"]](w).to(dtype).train()
            self.inputs = [torch.randint(w["vocab"], (case["samples"], w[key])) for key in ("encoder_seq", "seq")]
        self.run = torch.compile(self.model) if case["mode"].endswith("c") else self.model
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-5, fused=True)
        self.cast = contextlib.nullcontext if is_cast else (lambda: torch.autocast("cuda", torch.bfloat16))

    def forward(self):
        with self.cast():
            self.loss = self.run(*self.inputs)


def main(out, cases=os.path.join(HERE, "encoder_decoder_cases.json")):
    rows = []
    with open(cases) as file:
        cases = json.load(file)
    for case in cases:
        before = torch.cuda.memory_allocated()
        row = passes.measured(Step(case), case.get("quick", False))
        row["peak_bytes"] -= before
        rows.append(case | row)
        gc.collect()
        torch.cuda.empty_cache()
        torch._dynamo.reset()
        with open(out, "w") as file:
            json.dump(rows, file)
        print(case["name"], case["mode"], row["step_s"], row["peak_bytes"], row["parameters"], flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
