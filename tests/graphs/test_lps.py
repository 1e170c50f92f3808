"""Lubotzky, Phillips and Sarnak: regular, connected, of the right size, and Ramanujan, checked by eigenvalues."""

import math

import networkx
import pytest

import graphsnd as gs
from graphsnd.bounds.spectral import spectrum
from graphsnd.graphs.lps import lps


@pytest.mark.parametrize(("p", "q", "bipartite"), [(5, 13, True), (5, 17, True), (13, 17, False), (17, 13, False)])
def test_ramanujan(p: int, q: int, bipartite: bool) -> None:
    graph = lps(p, q)
    assert graph.n == q * (q * q - 1) // (1 if bipartite else 2)
    assert bool((graph.degrees() == p + 1).all())
    found = spectrum(graph)
    assert found.connected
    assert found.bipartite == bipartite
    assert found.signed_second <= 2 * math.sqrt(p) + 1e-6
    assert found.ramanujan != bipartite
    # Close to the least that any graph of this degree and size can have, so not small by mistake.
    assert found.second > 0.9 * 2 * math.sqrt(p)
    assert gs.Graph(graph.n, graph.edges).edges.equal(graph.edges)


def test_girth_is_large() -> None:
    # 4 log_p q - log_p 4 for the bipartite graphs.
    assert networkx.girth(lps(5, 13).to_networkx()) >= 4 * math.log(13, 5) - math.log(4, 5)


@pytest.mark.parametrize(("p", "q", "name", "says"), [
    (7, 13, "p", "Use 5 or 13"), (5, 15, "q", "Use 13 or 17"), (5, 5, "q", "above 4 other than 5"),
    (29, 5, "q", "above 10"), (5, 13.0, "q", "prime"),
])  # fmt: skip
def test_impossible_parameters_say_what_is_possible(p: int, q: int, name: str, says: str) -> None:
    with pytest.raises(gs.InputError, match=f"`{name}`") as raised:
        lps(p, q)
    assert says in str(raised.value)
