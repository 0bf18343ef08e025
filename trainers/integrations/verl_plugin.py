"""Imported by verl where ``VERL_USE_EXTERNAL_MODULES`` names it: registers turngym's estimators and policy losses."""

from turngym.trainers.integrations.verl_credit import register_all

register_all()
