"""Systems of conservation laws: fluxes, Riemann solvers and wall states, as arguments of ConservationLaw."""
