"""Three distances between categorical policies, with an action that only some agents may take."""

import torch

import graphsnd as gs

torch.manual_seed(0)
logits = torch.randn(512, 8, 5)  # observations, agents, actions
mask = torch.ones(8, 5, dtype=torch.bool)
mask[4:, 0] = False  # agents 4 to 7 may not take action 0
behavior = gs.Categorical(logits=logits, mask=mask)

for distance in (gs.TotalVariation(), gs.Hellinger(), gs.JensenShannon()):
    estimate = gs.measure(behavior, distance=distance)
    print(f"{distance.name:16s} SND {estimate.value:.4f}, never above {distance.maximum:.4f}")

roles = gs.graphs.cliques([0, 0, 0, 0, 1, 1, 1, 1])
print("within roles   ", float(gs.graph_snd(behavior, roles)))
