"""Did only the prevalence change? (thesis Def. 6.4; section 6.1.3, assumption i)"""

from lifelong_core.deploy.assumption.judgement import AssumptionReference, assumption_test
from lifelong_core.deploy.assumption.result import AssumptionTest, ComponentTest, Disagreement

__all__ = ["AssumptionReference", "AssumptionTest", "ComponentTest", "Disagreement", "assumption_test"]
