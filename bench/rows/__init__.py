"""Kinds of rows, each with its way of measuring; the rows themselves stand in bench/scenarios/."""
