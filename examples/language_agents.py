"""Agents that answer with text: how different are they, if we know how much of their repertoire they share?"""

import random
import zlib

import torch

import graphsnd as gs

PROMPTS = ["The door is locked.", "A stranger greets you.", "The bridge is out."]
VERBS, NOUNS = ["open", "take", "follow", "avoid", "ask", "paint"], ["key", "guide", "river", "road", "map", "lantern"]
SHARED = [f"we {verb} the {noun} together" for verb in VERBS[:3] for noun in NOUNS[:3]]
REPERTOIRES = {
    "scout": [f"I {verb} the {noun} and look ahead" for verb in VERBS for noun in NOUNS],
    "guard": [f"you {verb} no {noun} before sunrise" for verb in VERBS for noun in NOUNS],
    "bard": [f"let us {verb} a {noun} in song" for verb in VERBS for noun in NOUNS],
}


def make_agent(own: list[str], overlap: float, seed: int):  # type: ignore[no-untyped-def]
    """Return an agent that says something all agents say with probability ``overlap``, else something of its own."""
    generator = random.Random(seed)
    return lambda prompts: [generator.choice(SHARED if generator.random() < overlap else own) for _ in prompts]


def encode(sentences: list[str], features: int = 32) -> torch.Tensor:
    """Hash words to features, and give all sentences the same length; any sentence encoder can stand here."""
    counts = torch.zeros(len(sentences), features)
    for row, sentence in zip(counts, sentences, strict=True):
        for word in sentence.split():
            row[zlib.crc32(word.encode()) % features] += 1
    return counts / counts.norm(dim=-1, keepdim=True)


whole = gs.Samples({name: encode(own) for name, own in REPERTOIRES.items()})  # every sentence once: no chance is left
apart = float(gs.snd(whole))
for overlap in (0.0, 0.25, 0.5, 0.75, 1.0):
    agents = {name: make_agent(own, overlap, seed) for seed, (name, own) in enumerate(REPERTOIRES.items())}
    answers = gs.draw_samples(agents, PROMPTS, samples=128, encode=encode)
    plain, corrected = float(gs.snd(answers)), float(gs.snd(answers, "sliced-debiased"))
    print(f"share {overlap:4.0%}: SND {plain:.3f}, corrected {corrected:.3f} of {apart:.3f}")
