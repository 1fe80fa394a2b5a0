"""Independent references: quantisation."""

from __future__ import annotations

from .cases import Reference

REFERENCES: dict[str, Reference] = {}
