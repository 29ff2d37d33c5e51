"""Words by which the extractive summarizer of chunks tells a constraint, a decision and an outcome.

A hint and no more: a sentence without any of them may still be kept, among the entities.
"""

from __future__ import annotations

import re

_CONSTRAINTS = """
    must|must not|have to|has to|need to|needs to|should|may not|can't|cannot|don't|do not|never|only|without
    |no|not|at most|at least|up to|no more than|maximum|minimum|max|min|limit|budget|before|until|deadline
    |prefer|allergic|avoid|instead|except
    |muss|müssen|darf|dürfen|soll|sollte|nur|kein|keine|keinen|nicht|niemals|ohne|höchstens|mindestens|maximal
    |bis|spätestens|lieber
    |doit|devez|faut|seulement|uniquement|jamais|sans|pas|maximum|au plus|au moins|avant|plutôt
    |debe|deben|tiene que|solo|sólo|nunca|sin|máximo|mínimo|como mucho|al menos|antes
    |deve|devono|soltanto|mai|senza|massimo|minimo|almeno|prima
    |deve|apenas|somente|nunca|sem|não|máximo|mínimo
    |moet|mag|alleen|nooit|zonder|geen|niet|hoogstens|minstens
    |должен|нужно|только|никогда|без|не|нельзя|максимум|минимум
"""
_CONSTRAINT_CHARACTERS = """
    必须|必須|不要|不能|不得|不可|只要|只能|仅|僅|最多|至少|不超过|不超過|以内|以內|預算|预算
    |ないで|なければ|べき|だけ|のみ|以下|以上|まで|禁止|避け
    |반드시|하지 마|안 돼|만 |최대|최소|이하|이상|까지|제외|없이
    |يجب|لا |فقط|بدون|على الأكثر|ต้อง|ห้าม|ไม่|เท่านั้น
"""
_DECISIONS = """
    decide|decided|decision|choose|chose|chosen|agree|agreed|confirm|confirmed|book|booked|approve|approved
    |select|selected|will|i'll|we'll|let's|go with|going with|done|completed|created|updated|deleted|cancelled
    |canceled|changed|sent|fixed|resolved|implemented|switched|instead
    |entschieden|beschlossen|gewählt|vereinbart|bestätigt|gebucht|genehmigt|werde|erledigt|erstellt|geändert
    |décidé|choisi|convenu|confirmé|réservé|approuvé|vais|terminé|créé|modifié
    |decidido|elegido|acordado|confirmado|reservado|aprobado|voy a|hecho|creado|cambiado
    |deciso|scelto|concordato|confermato|prenotato|approvato|fatto|creato|modificato
    |escolhido|combinado|reservado|aprovado|feito|criado|alterado
    |besloten|gekozen|afgesproken|bevestigd|geboekt|gedaan|gewijzigd
    |решили|решено|выбран|выбрали|подтвержд\\w+|забронирован\\w*|сделано|создан\\w*|изменен\\w*
"""
_DECISION_CHARACTERS = """
    决定|決定|选择|選擇|确认|確認|同意|已经|已經|已预订|已完成|完成|改为|改為|就用|采用|採用
    |決め|選び|選択|予約|了承|しました|にします
    |결정|선택|확인|동의|예약|완료|변경|하겠습니다
    |قرر|اختار|تأكيد|تم |ตัดสินใจ|ยืนยัน|เลือก|จอง
"""
_OUTCOMES = """
    error|errors|failed|failure|exception|traceback|denied|refused|invalid|missing|timeout|warning|not found
    |success|successful|successfully|ok|passed|created|updated|deleted|confirmed|completed|total|result|status
    |fehler|fehlgeschlagen|erfolgreich|erreur|échec|réussi|error|falló|éxito|errore|riuscito|erro|fout
    |ошибка|успешно
"""
_OUTCOME_CHARACTERS = (
    "错误|錯誤|失败|失敗|成功|完成|总计|エラー|合計|오류|실패|성공|합계|خطأ|نجاح|ผิดพลาด|สำเร็จ"
)


def _pattern(words: str, characters: str) -> re.Pattern[str]:
    """Words of spaced scripts as whole words, in any case; characters of the others anywhere."""
    spaced = re.sub(r"\n\s*", "", words)
    unspaced = re.sub(r"\n\s*", "", characters)
    return re.compile(rf"(?i)(?<!\w)(?:{spaced})(?!\w)|{unspaced}")


CONSTRAINT = _pattern(_CONSTRAINTS, _CONSTRAINT_CHARACTERS)
DECISION = _pattern(_DECISIONS, _DECISION_CHARACTERS)
OUTCOME = _pattern(_OUTCOMES, _OUTCOME_CHARACTERS)
