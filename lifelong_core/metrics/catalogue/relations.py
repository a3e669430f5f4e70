"""Relations between metrics: thesis Table 4.2, and relations that follow from the definitions."""

from lifelong_core.metrics.catalogue.metric_info import Relation

RELATIONS: tuple[Relation, ...] = (
    Relation("AC", "ER", "same information", "AC = 1 - ER", "Remark 2.19"),
    Relation("AC", "BA", "same if balanced", "AC = BA for balanced tasks", "Prop. 2.22"),
    Relation(
        "AC", "MCC", "ingredient", "the numerator of MCC is AC less the agreement by chance", "Def. 2.49"
    ),
    Relation(
        "AC", "PPV", "ingredient", "AC is the mean of PPV, weighted by how often k is predicted", "Cor. 2.40"
    ),
    Relation("AC", "TPR", "ingredient", "AC is the mean of TPR, weighted by prevalence", "Prop. 2.20"),
    Relation("BA", "J", "same information", "BA = (J + 1) / 2 for two classes", "Prop. 2.34"),
    Relation("BA", "TPR", "ingredient", "BA is the mean of TPR over the classes", "Def. 2.21"),
    Relation(
        "BA",
        "WCK",
        "same if balanced",
        "WCK = (C BA - 1) / (C - 1) for balanced tasks with 0-1 costs",
        "Prop. 2.31",
    ),
    Relation("BA", "CK", "same if balanced", "CK = (C BA - 1) / (C - 1) for balanced tasks", "Prop. 2.31"),
    Relation(
        "BA", "EC", "special case", "EC = 1 - BA for costs 1 / (C P(i)) of every confusion", "Def. 2.23"
    ),
    Relation("CK", "WCK", "special case", "CK is WCK with 0-1 costs", "Def. 2.30"),
    Relation("EC", "ER", "special case", "ER is EC with 0-1 costs", "Prop. 2.24"),
    Relation(
        "EC",
        "TPR",
        "ingredient",
        "EC weights the rates of every confusion, of which TPR is one",
        "Prop. 2.25",
    ),
    Relation(
        "EC", "NEC", "ingredient", "NEC is EC over the expected cost of the naive classifier", "Def. 2.27"
    ),
    Relation(
        "EC",
        "NB",
        "special case",
        "NB(t) = P(1) - EC with costs 1 of a miss, t / (1 - t) of an alarm",
        "Def. 2.57",
    ),
    Relation(
        "F_beta", "PPV", "ingredient", "F_beta is the weighted harmonic mean of PPV and TPR", "Def. 2.44"
    ),
    Relation(
        "F_beta", "TPR", "ingredient", "F_beta is the weighted harmonic mean of PPV and TPR", "Def. 2.44"
    ),
    Relation("F_beta", "JAC", "same information", "F_1 = 2 JAC / (1 + JAC)", "Prop. 2.48"),
    Relation(
        "J", "MCC", "ingredient", "|MCC| is the geometric mean of J and MK for two classes", "Cor. 2.52"
    ),
    Relation("J", "MK", "ingredient", "J of the transposed confusion matrix is MK", "Prop. 2.42"),
    Relation("J", "TNR", "ingredient", "J = TPR + TNR - 1", "Def. 2.33"),
    Relation("J", "TPR", "ingredient", "J = TPR + TNR - 1", "Def. 2.33"),
    Relation("LR+", "TNR", "ingredient", "LR+ = TPR / (1 - TNR)", "Def. 2.32"),
    Relation("LR+", "TPR", "ingredient", "LR+ = TPR / (1 - TNR)", "Def. 2.32"),
    Relation("LR-", "TNR", "ingredient", "LR- = (1 - TPR) / TNR", "Def. 2.32"),
    Relation("LR-", "TPR", "ingredient", "LR- = (1 - TPR) / TNR", "Def. 2.32"),
    Relation(
        "MCC", "MK", "ingredient", "|MCC| is the geometric mean of J and MK for two classes", "Cor. 2.52"
    ),
    Relation("MK", "NPV", "ingredient", "MK = PPV + NPV - 1", "Def. 2.41"),
    Relation("MK", "PPV", "ingredient", "MK = PPV + NPV - 1", "Def. 2.41"),
    Relation("NB", "TNR", "ingredient", "NB(t) = P(1) TPR - P(2) (1 - TNR) t / (1 - t)", "Remark 2.58"),
    Relation("NB", "TPR", "ingredient", "NB(t) = P(1) TPR - P(2) (1 - TNR) t / (1 - t)", "Remark 2.58"),
    Relation("NPV", "TNR", "ingredient", "NPV is TNR of the transposed confusion matrix", "Prop. 2.39"),
    Relation("PPV", "TPR", "ingredient", "PPV is TPR of the transposed confusion matrix", "Prop. 2.39"),
    Relation("TPR", "FNR", "same information", "FNR = 1 - TPR", "Remark 2.17"),
    Relation("TNR", "FPR", "same information", "FPR = 1 - TNR", "Remark 2.17"),
    Relation("PPV", "FDR", "same information", "FDR = 1 - PPV", "Remark 2.36"),
    Relation("NPV", "FOR", "same information", "FOR = 1 - NPV", "Remark 2.36"),
    Relation("BS", "RBS", "same information", "RBS is the root of BS", "Def. 2.74"),
    Relation("BS", "BSS", "ingredient", "BSS = 1 - BS / BS of the prevalences", "Def. 2.74"),
    Relation(
        "BS",
        "CE",
        "ingredient",
        "BS is refinement plus the mean square of CE",
        "Theorem 2.72",
    ),
    Relation(
        "ECE",
        "TCE",
        "special case",
        "ECE is TCE with confidences grouped into bins, and never larger",
        "Def. 2.66",
    ),
    Relation(
        "CWCE",
        "MCE",
        "ingredient",
        "CWCE is the mean of MCE over the classes, grouped into bins",
        "Def. 2.68",
    ),
    Relation(
        "ECE_KDE", "CE", "special case", "ECE_KDE is CE with a smoothed recalibration function", "Def. 2.70"
    ),
    Relation(
        "ECCL",
        "EC",
        "ingredient",
        "ECCL is EC of Bayes decisions, less EC of those after recalibration",
        "Ferrer 2022",
    ),
    Relation(
        "UA-accuracy", "AC", "special case", "AC is its limit without damping or tolerance", "Sperling et al."
    ),
    Relation(
        "UA-precision",
        "PPV",
        "special case",
        "PPV is its limit without damping or tolerance",
        "Sperling et al.",
    ),
    Relation(
        "UA-recall", "TPR", "special case", "TPR is its limit without damping or tolerance", "Sperling et al."
    ),
    Relation(
        "UA-FPR", "FPR", "special case", "FPR is its limit without damping or tolerance", "Sperling et al."
    ),
    Relation(
        "UA-F1", "F_beta", "special case", "F_1 is its limit without damping or tolerance", "Sperling et al."
    ),
    Relation(
        "S_AJ", "CK", "same information", "S_AJ is CK of one prediction against the other", "Romanova 2020"
    ),
    Relation(
        "S_J", "JAC", "same information", "S_J is JAC of one prediction against the other", "Romanova 2020"
    ),
    Relation(
        "S_J",
        "S_HAPJ",
        "ingredient",
        "S_HAPJ takes the rarer of both agreements in place of n11",
        "Romanova 2020",
    ),
    Relation("S_J", "S_APJ", "ingredient", "S_APJ is S_J adjusted for agreement by chance", "Romanova 2020"),
    Relation(
        "S_PO", "S_APO", "ingredient", "S_APO is S_PO adjusted for agreement by chance", "Romanova 2020"
    ),
    Relation(
        "S_Spearman", "S_Pearson", "special case", "S_Spearman is S_Pearson of mid-ranks", "Romanova 2020"
    ),
)
"""Every pair once. Sources that are numbers refer to the thesis."""
