"""Beams of several sentences on a device: what the search knows of them, and how it goes on with new logits.

Scores, ends and limits are those of `heedful translate`: log p / ((5 + n) / 6)^0.6, at most 50 tokens more than the source.
"""

import torch

BOS, EOS, ALPHA, BEYOND = 1, 2, 0.6, 50


def penalty(tokens):
    return ((5 + tokens) / 6) ** ALPHA


class Beams:
    """The state of a search. What a step changes stays where it is in memory, so that a graph can be replayed."""

    def __init__(self, count, beam, room, device):
        make = lambda *shape, value=0, dtype=torch.long: torch.full(shape, value, dtype=dtype, device=device)
        self.count, self.beam = count, beam
        self.position = make(1)
        self.limits = make(count)
        self.tokens = make(count, beam, value=BOS)
        self.scores = make(count, beam, value=-torch.inf, dtype=torch.float32)
        self.said = make(count, beam, room, value=EOS, dtype=torch.int32)
        self.found = make(count, room, value=EOS, dtype=torch.int32)
        self.found_score = make(count, value=torch.inf, dtype=torch.float32)
        self.found_length = make(count)
        # Which row of the step before a hypothesis goes on from.
        self.rows = torch.arange(count * beam, device=device)
        self.goes_on = make(count, value=False, dtype=torch.bool)
        self.left = make(1)

    def fields(self):
        """What belongs to a sentence; its rows in the batch are not among it."""
        return [self.limits, self.tokens, self.scores, self.said, self.found, self.found_score, self.found_length, self.goes_on]

    def begin(self, limits, real):
        """The search begins; beams from `real` on are there to fill the batch, and nothing is better than what they found."""
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
        """Goes on with the chosen sentences of another search, of which the first `real` count; its rows are in order then."""
        for mine, theirs in zip(self.fields(), other.fields()):
            mine.copy_(theirs.index_select(0, chosen))
        self.found_score[real:] = torch.inf
        self.position.copy_(other.position)
        self.rows.copy_(torch.arange(len(self.rows), device=self.rows.device))

    def advance(self, logits, choose):
        """Every sentence goes on with its best hypotheses; `choose` is the function below, compiled or not."""
        state = self.position, self.limits, self.tokens, self.scores, self.said, self.found, self.found_score, self.found_length
        tokens, scores, said, found, found_score, found_length, rows, goes_on = choose(logits, *state)
        self.tokens.copy_(tokens)
        self.scores.copy_(scores)
        self.said.copy_(said)
        self.found.copy_(found)
        self.found_score.copy_(found_score)
        self.found_length.copy_(found_length)
        self.rows.copy_(rows)
        self.goes_on.copy_(goes_on)
        self.left.copy_(goes_on.sum().view(1))
        self.position.add_(1)


def choose(logits, position, limits, tokens, scores, said, found, found_score, found_length):
    """The state after one more token. The best of a sentence are among the best of each of its hypotheses."""
    count, beam = scores.shape
    wide = 2 * beam
    sums = logits.float().logsumexp(-1).view(count, beam, 1)
    best, token = logits.topk(wide)
    best = best.float().view(count, beam, wide) - sums + scores[:, :, None]
    token = token.view(count, beam, wide)
    # At the limit nothing but the end is left.
    at_limit = limits == position
    end = logits[:, EOS].float().view(count, beam, 1) - sums + scores[:, :, None]
    only_end = torch.cat([end, torch.full_like(best[:, :, 1:], -torch.inf)], 2)
    best = torch.where(at_limit[:, None, None], only_end, best)
    token = token.masked_fill(at_limit[:, None, None], EOS)
    best, place = best.view(count, beam * wide).topk(wide)
    origin, token = place // wide, token.view(count, beam * wide).gather(1, place)
    ends = token == EOS
    # Ends among the best are finished.
    score, which = (best.masked_fill(~ends, -torch.inf)[:, :beam] / penalty(position + 1)).max(1)
    better = score > found_score
    parent = origin.gather(1, which[:, None])[:, :, None].expand(-1, 1, said.shape[2])
    found = torch.where(better[:, None], said.gather(1, parent)[:, 0], found)
    found_score = torch.where(better, score, found_score)
    found_length = torch.where(better, position, found_length)
    # Of the others the best go on.
    scores, place = best.masked_fill(ends, -torch.inf).topk(beam)
    origin, tokens = origin.gather(1, place), token.gather(1, place)
    said = said.gather(1, origin[:, :, None].expand(-1, -1, said.shape[2]))
    here = torch.arange(said.shape[2], device=said.device) == position
    said = torch.where(here, tokens[:, :, None].to(said.dtype), said)
    goes_on = (scores[:, 0] / penalty(limits + 1) > found_score) & ~at_limit
    rows = (torch.arange(count, device=said.device)[:, None] * beam + origin).flatten()
    return tokens, scores, said, found, found_score, found_length, rows, goes_on


class Outputs:
    """The best output of every sentence of a batch; one place more, for those that only fill it."""

    def __init__(self, count, room, device):
        self.tokens = torch.full((count + 1, room), EOS, dtype=torch.int32, device=device)
        self.lengths = torch.zeros(count + 1, dtype=torch.long, device=device)

    def keep(self, numbers, beams):
        self.tokens[numbers] = beams.found
        self.lengths[numbers] = beams.found_length

    def lists(self):
        texts, lengths = self.tokens.tolist()[:-1], self.lengths.tolist()[:-1]
        return [text[:length] for text, length in zip(texts, lengths)]
