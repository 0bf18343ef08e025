"""Studies: several training methods, several seeds each, compared with intervals; a plan is written before it runs."""
