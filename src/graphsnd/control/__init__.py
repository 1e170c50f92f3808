"""Control: hold the diversity of a team at a level while it learns, whatever trains it (DiCo).

A policy is a shared network plus one number times the deviation of each agent (:class:`ControlledPolicy`). A
:class:`Controller` chooses that number from the diversity of the pairs that a :mod:`design <graphsnd.designs>`
selects: ``scale, state, status = controller.step(measured, state)``. :class:`Seek` also moves the level towards more
reward. :func:`audit` measures the result over all pairs and is never fed back.
"""

from graphsnd.control.audits import audit, audit_error, tracking_error
from graphsnd.control.controllers import Controller, DiCo, Homogeneous, State, Status, Unconstrained
from graphsnd.control.networks import ControlledTeam
from graphsnd.control.policy import ControlledPolicy
from graphsnd.control.seeking import Seek

__all__ = [
    "ControlledPolicy",
    "ControlledTeam",
    "Controller",
    "DiCo",
    "Homogeneous",
    "Seek",
    "State",
    "Status",
    "Unconstrained",
    "audit",
    "audit_error",
    "tracking_error",
]
