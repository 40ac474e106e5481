"""What it costs: `headscope.segment` against a bare forward pass over the same tokens.

Time is that of the processor, in one thread: others on the machine do not count.
"""

from __future__ import annotations

import statistics
import time

import torch

import headscope
from headscope.corpus.alone import Alone, sentence_spans
from headscope.model.loading import Model
from headscope.wording import counted

RUNS = 3
SENTENCES = 400


def cost_of(model: Model) -> list[str]:
    """Both alternate; the ratio is the median of neighbouring runs. In both, sentences of like length run together."""
    every = "\n".join(text.text for text in headscope.sample_texts())
    spans = sentence_spans(every, "auto")[:SENTENCES]
    text = every[: spans[-1].end]
    words = len(text.split())
    ratios, seconds = [], []
    for _ in range(RUNS):
        bare = _bare(model, text)
        began = time.process_time()
        headscope.segment(model, text)
        took = time.process_time() - began
        ratios.append(took / bare)
        seconds.append(took)
    return [
        f"cost, {counted(torch.get_num_threads(), 'thread')}: {1000 * statistics.median(seconds) / words:.2f} s for "
        f"1,000 words, {statistics.median(ratios):.2f} x a bare forward pass over the same tokens "
        f"({min(ratios):.2f} to {max(ratios):.2f} in {RUNS} runs; {words:,} words in {len(spans)} sentences)",
        "",
    ]


def _bare(model: Model, text: str) -> float:
    alone = Alone(model.tokenizer, min(512, model.longest or 512), model.embedding_rows)
    ids = alone.ids([text[start:end] for start, end in sentence_spans(text, "auto")])
    two_stacks = getattr(model.network.config, "is_encoder_decoder", False)
    network = model.network.get_encoder() if two_stacks else model.network
    began = time.process_time()
    with torch.inference_mode():
        for group in alone.groups(ids):
            network(torch.from_numpy(group.ids), attention_mask=torch.from_numpy(group.mask))
    return time.process_time() - began
