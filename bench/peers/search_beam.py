"""The beam search state of several sentences on a device, and its update with new logits.

Scores, stopping and length limits are those of `heedful translate`: log p / ((5 + n) / 6)^0.6, at most 50 tokens more than the source.
"""

import torch

BOS, EOS, ALPHA, EXTRA_TOKENS = 1, 2, 0.6, 50


def penalty(tokens):
    return ((5 + tokens) / 6) ** ALPHA


class Beams:
    """The state of a search. Its tensors keep their addresses, so that a CUDA graph can be replayed."""

    def __init__(self, count, beam, max_length, device):
        make = lambda *shape, value=0, dtype=torch.long: torch.full(shape, value, dtype=dtype, device=device)
        self.count, self.beam = count, beam
        self.position = make(1)
        self.limits = make(count)
        self.tokens = make(count, beam, value=BOS)
        self.scores = make(count, beam, value=-torch.inf, dtype=torch.float32)
        self.outputs = make(count, beam, max_length, value=EOS, dtype=torch.int32)
        self.found = make(count, max_length, value=EOS, dtype=torch.int32)
        self.found_score = make(count, value=torch.inf, dtype=torch.float32)
        self.found_length = make(count)
        # For each hypothesis, the row of its parent in the previous step.
        self.rows = torch.arange(count * beam, device=device)
        self.unfinished = make(count, value=False, dtype=torch.bool)
        self.left = make(1)

    def fields(self):
        """The tensors that belong to a sentence, without its rows in the batch."""
        return [self.limits, self.tokens, self.scores, self.outputs, self.found, self.found_score, self.found_length, self.unfinished]

    def begin(self, limits, real):
        """Begins a search. Sentences from `real` on are padding; their found score is infinite, so that they end at once."""
        self.position.zero_()
        self.limits.copy_(limits)
        self.tokens.fill_(BOS)
        self.scores.fill_(-torch.inf)
        self.scores[:real, 0] = 0
        self.found_score.fill_(torch.inf)
        self.found_score[:real] = -torch.inf
        self.found_length.zero_()
        self.rows.copy_(torch.arange(len(self.rows), device=self.rows.device))

    def take(self, other, chosen, real):
        """Continues with the chosen sentences of another search; those from `real` on are padding. The rows are then in order."""
        for mine, theirs in zip(self.fields(), other.fields()):
            mine.copy_(theirs.index_select(0, chosen))
        self.found_score[real:] = torch.inf
        self.position.copy_(other.position)
        self.rows.copy_(torch.arange(len(self.rows), device=self.rows.device))

    def advance(self, logits, choose):
        """Extends every sentence by one token; `choose` is the function below, compiled or not."""
        state = self.position, self.limits, self.tokens, self.scores, self.outputs, self.found, self.found_score, self.found_length
        tokens, scores, outputs, found, found_score, found_length, rows, unfinished = choose(logits, *state)
        self.tokens.copy_(tokens)
        self.scores.copy_(scores)
        self.outputs.copy_(outputs)
        self.found.copy_(found)
        self.found_score.copy_(found_score)
        self.found_length.copy_(found_length)
        self.rows.copy_(rows)
        self.unfinished.copy_(unfinished)
        self.left.copy_(unfinished.sum().view(1))
        self.position.add_(1)


def choose(logits, position, limits, tokens, scores, outputs, found, found_score, found_length):
    """The state after one more token. The best continuations of a sentence are among the best of each of its hypotheses."""
    count, beam = scores.shape
    candidates = 2 * beam
    sums = logits.float().logsumexp(-1).view(count, beam, 1)
    best, token = logits.topk(candidates)
    best = best.float().view(count, beam, candidates) - sums + scores[:, :, None]
    token = token.view(count, beam, candidates)
    # At the length limit only <eos> is allowed.
    at_limit = limits == position
    end = logits[:, EOS].float().view(count, beam, 1) - sums + scores[:, :, None]
    only_end = torch.cat([end, torch.full_like(best[:, :, 1:], -torch.inf)], 2)
    best = torch.where(at_limit[:, None, None], only_end, best)
    token = token.masked_fill(at_limit[:, None, None], EOS)
    best, index = best.view(count, beam * candidates).topk(candidates)
    origin, token = index // candidates, token.view(count, beam * candidates).gather(1, index)
    ends = token == EOS
    # Candidates that end with <eos> are finished.
    score, which = (best.masked_fill(~ends, -torch.inf)[:, :beam] / penalty(position + 1)).max(1)
    better = score > found_score
    parent = origin.gather(1, which[:, None])[:, :, None].expand(-1, 1, outputs.shape[2])
    found = torch.where(better[:, None], outputs.gather(1, parent)[:, 0], found)
    found_score = torch.where(better, score, found_score)
    found_length = torch.where(better, position, found_length)
    # The best of the others continue.
    scores, index = best.masked_fill(ends, -torch.inf).topk(beam)
    origin, tokens = origin.gather(1, index), token.gather(1, index)
    outputs = outputs.gather(1, origin[:, :, None].expand(-1, -1, outputs.shape[2]))
    here = torch.arange(outputs.shape[2], device=outputs.device) == position
    outputs = torch.where(here, tokens[:, :, None].to(outputs.dtype), outputs)
    unfinished = (scores[:, 0] / penalty(limits + 1) > found_score) & ~at_limit
    rows = (torch.arange(count, device=outputs.device)[:, None] * beam + origin).flatten()
    return tokens, scores, outputs, found, found_score, found_length, rows, unfinished


class Outputs:
    """The best output of every sentence of a batch, and one extra row for padding."""

    def __init__(self, count, max_length, device):
        self.tokens = torch.full((count + 1, max_length), EOS, dtype=torch.int32, device=device)
        self.lengths = torch.zeros(count + 1, dtype=torch.long, device=device)

    def keep(self, numbers, beams):
        self.tokens[numbers] = beams.found
        self.lengths[numbers] = beams.found_length

    def lists(self):
        texts, lengths = self.tokens.tolist()[:-1], self.lengths.tolist()[:-1]
        return [text[:length] for text, length in zip(texts, lengths)]
